package commands

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
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
	service        peering.Service
	clientAddress  string
	clientPort     uint16
	implementation records.Implementation
	mtu            int
	clampMSS       bool
	keep           bool
	timeout        time.Duration
	output         format
}

func newNetworkConnect(env *Env, local *clusterFlags, do operation[peering.ConnectOptions, peering.Connection]) *cobra.Command {
	f := connectFlags{
		clusters: twoClusters{local, newRemoteFlags()}, serverSide: remotePlace, implementation: records.Auto, output: formatText,
		service: peering.Service{Type: corev1.ServiceTypeLoadBalancer},
	}
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Connect two clusters",
		Long: `Connect two clusters: every pod of each reaches every pod of the other, encrypted. Ranges that both use are
seen by the other under free addresses, 1:1. It returns when packets of every node have crossed both ways.

Running it again changes nothing. With other flags it says what differs, and changes it with --update. What a
failed or interrupted run has made is removed, except with --keep.`,
		Example: `  # Two contexts of the same kubeconfig, where the remote cluster has no load balancer
  liqoctl network connect --context a --remote-context b --gw-server-service-type NodePort`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			return perform(cmd.Context(), env, do, o, f.output, describeConnection)
		},
	}
	f.clusters.remote.register(cmd, cmd.Flags())
	f.local, f.remote = newSideFlags(cmd, ""), newSideFlags(cmd, remotePrefix)
	f.install = newInstallFlags(cmd)
	f.gateway(cmd)
	f.tunnel(cmd)
	timeoutFlag(cmd.Flags(), &f.timeout)
	cmd.Flags().BoolVar(&f.keep, "keep", false, "leave what a failed run has made, to be looked at")
	cmd.Flags().Bool("wait", true, "wait until packets cross; accepted for compatibility, always on")
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON)
	return cmd
}

// gateway adds the flags that say how the gateways find each other.
func (f *connectFlags) gateway(cmd *cobra.Command) {
	enumFlag(cmd, &f.serverSide, "server-side", "", "cluster whose gateway waits for the other's packets", remotePlace, localPlace)
	enumFlag(cmd, &f.service.Type, "gw-server-service-type", "", "type of the Service of the server's gateway",
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP)
	flags := cmd.Flags()
	flags.Uint16Var(&f.service.Port, "gw-server-service-port", 51840, "UDP `PORT` of the server's gateway")
	flags.Uint16Var(&f.service.NodePort, "gw-server-service-nodeport", 0, "`PORT` of the nodes for the server's gateway (default: any)")
	flags.StringVar(&f.service.LoadBalancerIP, "gw-server-service-loadbalancerip", "", "`ADDRESS` to ask the load balancer for")
	flags.StringVar(&f.clientAddress, "gw-client-address", "", "`ADDRESS` or name at which the client finds the server (default: the Service's)")
	flags.Uint16Var(&f.clientPort, "gw-client-port", 0, "UDP `PORT` at which the client finds the server (default: the Service's)")
	checkFlag(flags, "gw-server-service-port", port)
	checkFlag(flags, "gw-server-service-nodeport", portOrAny)
	checkText(flags, "gw-server-service-loadbalancerip", address)
	checkText(flags, "gw-client-address", host)
	checkFlag(flags, "gw-client-port", portOrAny)
}

// tunnel adds the flags of the tunnel itself.
func (f *connectFlags) tunnel(cmd *cobra.Command) {
	enumFlag(cmd, &f.implementation, "wireguard", "", "who encrypts; auto: the gateway's kernel where it can",
		records.Auto, records.Kernel, records.Userspace)
	cmd.Flags().IntVar(&f.mtu, "mtu", 0, "size in `BYTES` of the largest packet between pods (default: what was measured to fit every hop)")
	checkFlag(cmd.Flags(), "mtu", packetSize)
	cmd.Flags().BoolVar(&f.clampMSS, "mss-clamp", true, "limit TCP segments to what fits the tunnel")
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

// check refuses flags that make no sense together, and time that is none.
func (f *connectFlags) check() error {
	switch s := f.service; {
	case s.NodePort != 0 && s.Type == corev1.ServiceTypeClusterIP:
		return usagef("--gw-server-service-nodeport: a Service of type %s has no port on the nodes", s.Type)
	case s.LoadBalancerIP != "" && s.Type != corev1.ServiceTypeLoadBalancer:
		return usagef("--gw-server-service-loadbalancerip: a Service of type %s has no load balancer", s.Type)
	case f.local.side.Name != "" && f.local.side.Name == f.remote.side.Name:
		return usagef("--name and --remote-name are both %q", f.local.side.Name)
	}
	return checkTimeout(f.timeout)
}
