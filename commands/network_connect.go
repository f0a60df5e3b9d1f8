package commands

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// place is a cluster as seen from the command line.
type place string

const (
	remotePlace place = "remote"
	localPlace  place = "local"
)

// connectFlags are the flags of `network connect`.
type connectFlags struct {
	clusters twoClusters
	local    *sideFlags
	remote   *sideFlags
	install  *installFlags

	serverSide     place
	service        templates.ServiceValues
	clientAddress  string
	clientPort     uint16
	implementation records.Implementation
	mtu            int
	clampMSS       bool
	keep           bool
	dryRun         bool
	timeout        time.Duration
	output         format
}

func newConnectFlags(local *clusterFlags) connectFlags {
	return connectFlags{
		clusters: twoClusters{local, newRemoteFlags()}, serverSide: remotePlace, implementation: records.Auto, output: formatText,
		service: templates.ServiceValues{Type: corev1.ServiceTypeLoadBalancer, Port: templates.TunnelPort}, clampMSS: true,
	}
}

func newNetworkConnect(env *Env, local *clusterFlags, do operation[peering.ConnectOptions, peering.Connection]) *cobra.Command {
	f := newConnectFlags(local)
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Connect two clusters",
		Long: `Connect two clusters: every pod of one reaches every pod of the other, encrypted. Overlapping CIDRs are remapped 1:1
to free ones. The command installs liqonet where it is missing, and returns when full-size packets of every node have
been verified in both directions.

With --dry-run the command prints the objects that it would create, change and delete in each cluster, and changes
nothing. What only the run itself can decide reads "known after apply".

Running it again changes nothing. With other flags it prints the differences, and applies them with --update. A run
that fails or is interrupted is rolled back, unless --keep is given.`,
		Example: `  # The remote cluster has a load balancer
  liqoctl network connect --context a --remote-context b

  # It has none: use a NodePort
  liqoctl network connect --context a --remote-context b --gw-server-service-type NodePort

  # Two kubeconfigs, and a CIDR that must stay free in the local cluster
  liqoctl network connect --kubeconfig a.yaml --remote-kubeconfig b.yaml --reserve 10.8.0.0/16`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if f.dryRun {
				return perform(cmd.Context(), env, dryly(peering.PlanConnect), o, f.output, describeDryRun)
			}
			return perform(cmd.Context(), env, do, o, f.output, describeConnection)
		},
	}
	f.register(cmd)
	dryRunFlag(cmd, &f.dryRun)
	boolFlag(cmd.Flags(), &f.keep, "keep", "do not roll back on failure")
	upstreamFlags(cmd, "wait", "yes")
	outputFlag(cmd, &f.output)
	return cmd
}

// register adds the flags that say what the peering is.
func (f *connectFlags) register(cmd *cobra.Command) {
	f.clusters.remote.register(cmd, cmd.Flags())
	f.local, f.remote = newSideFlags(cmd, ""), newSideFlags(cmd, remotePrefix)
	f.install = newInstallFlags(cmd)
	f.gateway(cmd)
	f.tunnel(cmd)
	timeoutFlag(cmd.Flags(), &f.timeout)
}

// gateway adds the flags that say how the gateways find each other.
func (f *connectFlags) gateway(cmd *cobra.Command) {
	enumFlag(cmd, &f.serverSide, "server-side", "cluster whose gateway is the WireGuard server", remotePlace, localPlace)
	enumFlag(cmd, &f.service.Type, "gw-server-service-type", "type of the Service of the server's gateway",
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP)
	flags := cmd.Flags()
	addFlag(flags, &f.service.Port, "gw-server-service-port", "PORT", "UDP port of the server's gateway", port)
	addFlag(flags, &f.service.NodePort, "gw-server-service-nodeport", "PORT", "NodePort of the server's gateway (default: allocated by the cluster)", portOrAny)
	addFlag(flags, &f.service.LoadBalancerIP, "gw-server-service-loadbalancerip", "ADDRESS", "address to request from the load balancer", address)
	textFlag(flags, &f.clientAddress, "gw-client-address", "HOST", "address or name where the client reaches the server (default: the Service's)", host)
	addFlag(flags, &f.clientPort, "gw-client-port", "PORT", "UDP port where the client reaches the server (default: the Service's)", portOrAny)
}

// tunnel adds the flags of the tunnel itself.
func (f *connectFlags) tunnel(cmd *cobra.Command) {
	enumFlag(cmd, &f.implementation, "wireguard", "WireGuard implementation; auto: the kernel's if the gateway's node has it",
		records.Auto, records.Kernel, records.Userspace)
	addFlag(cmd.Flags(), &f.mtu, "mtu", "BYTES", "MTU between pods of the two clusters (default: measured path MTU)", packetSize)
	boolFlag(cmd.Flags(), &f.clampMSS, "mss-clamp", "clamp the MSS of TCP connections to the MTU")
}

func (f *connectFlags) options(env *Env) (peering.ConnectOptions, error) {
	o := peering.ConnectOptions{
		LocalServes: f.serverSide == localPlace, Service: f.service, ClientAddress: f.clientAddress, ClientPort: f.clientPort,
		Implementation: f.implementation, MTU: f.mtu, ClampMSS: f.clampMSS, Keep: f.keep, Timeout: f.timeout,
	}
	if err := f.check(); err != nil {
		return o, err
	}
	var err error
	if o.Local, err = f.local.options(); err != nil {
		return o, err
	}
	if o.Remote, err = f.remote.options(); err != nil {
		return o, err
	}
	o.Installation = f.install.options()
	if o.Local.Cluster, o.Remote.Cluster, err = f.clusters.connect(env); err != nil {
		return o, err
	}
	o.Image, err = imageOrDefault(env, o.Image)
	return o, err
}

// check refuses flags that contradict each other.
func (f *connectFlags) check() error {
	switch s := f.service; {
	case s.NodePort != 0 && s.Type == corev1.ServiceTypeClusterIP:
		return usagef("--gw-server-service-nodeport: a Service of type %s has no NodePort", s.Type)
	case s.LoadBalancerIP.IsValid() && s.Type != corev1.ServiceTypeLoadBalancer:
		return usagef("--gw-server-service-loadbalancerip: a Service of type %s has no load balancer", s.Type)
	case f.local.side.Name != "" && f.local.side.Name == f.remote.side.Name:
		return usagef("--name and --remote-name are both %q", f.local.side.Name)
	}
	return nil
}
