package network

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// place is a cluster as seen from the command line.
type place string

const (
	remotePlace place = "remote"
	localPlace  place = "local"
)

// connectFlags are the flags that say what a peering is.
type connectFlags struct {
	peering.ConnectOptions
	clusters   cli.TwoClusters
	serverSide place  // "": unchanged
	again      string // the flags that select both clusters, for hints
	many       manyFlags
}

func newConnect(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[peering.ConnectOptions, peering.Connection]) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Connect two clusters",
		Long: `Connect two clusters: every pod of one reaches every pod of the other, encrypted. Overlapping CIDRs are remapped 1:1
to free ones. The command installs liqonet where it is missing, and returns when full-size packets of every node have
been verified in both directions.

With --dry-run the command prints what it would change in each cluster, and changes nothing; -o wide adds objects, fields
and the kernels of nodes and gateways. Values that depend on the run are printed as known after apply.

Nodes may join and leave while connect runs; those that are not Ready are skipped. If Ready nodes cannot be verified in
time, the others stay connected: the command lists these nodes with the reason, and its exit code is 3. It fails if no
node of a cluster can be verified, and with --all-nodes if one cannot.

Running it again changes nothing. With other flags it prints the differences, and applies them with --update. Settings
that you omit keep their values; defaults are those of a new peering. A run that fails or is interrupted is rolled back, unless --no-rollback is given.

--contexts connects several clusters: all with each other, or with --topology hub=CONTEXT one with each other one. All must
be reachable, and all peerings are planned before the first write. A peering that fails is rolled back alone; installations stay.
--timeout is for each installation and each peering.`,
		Example: `  # The remote cluster has a load balancer
  liqoctl network connect --context a --remote-context b

  # It has none: use a NodePort
  liqoctl network connect --context a --remote-context b --gw-server-service-type NodePort

  # Several clusters, each with each other, or all with a hub
  liqoctl network connect --contexts a,b,c
  liqoctl network connect --contexts a,b,c --topology hub=a

  # Two kubeconfigs, and a CIDR that must stay free in the local cluster
  liqoctl network connect --kubeconfig a.yaml --remote-kubeconfig b.yaml --reserve 10.8.0.0/16`,
		Args: cli.Arguments(),
	}
	f := newConnectFlags(cmd, local)
	cli.AllNodesFlag(cmd, &f.Installation)
	ui.BoolFlag(cmd.Flags(), &f.Keep, "no-rollback", "leave what a failed run has made")
	one := cli.Action[peering.ConnectOptions, peering.Connection]{
		Do: withMTUSources(env, do), Plan: peering.PlanConnect,
		Text:    func(b *strings.Builder, r peering.Connection) { describeConnection(b, r, f.again) },
		Wide:    func(b *strings.Builder, r peering.Connection) { describeConnectionWide(b, r, f.again) },
		Timeout: &f.Timeout, BySize: true, Ignored: []string{"wait", "yes"},
		Verdict: func(r peering.Connection) error {
			return verifiedAll(slices.Concat(r.Local.Unverified, r.Remote.Unverified)...)
		},
		Options: func([]string) (peering.ConnectOptions, error) { return f.options(env) },
	}
	many := f.many.action(env, cmd, f)
	f.many.register(cmd)
	run := one.Flags(env, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if chosen(cmd, f.many.contexts) {
			return many.Run(env, cmd, *run, args)
		}
		return one.Run(env, cmd, *run, args)
	}
	env.Screen(cmd, connectScreen)
	return cmd
}

const connectScreen = `
Connect two clusters: pods of each reach pods of the other, encrypted.
Overlapping CIDRs are remapped 1:1. Returns when full-size packets of every node
were verified both ways; a failed run is rolled back. Repeating the command
changes nothing. Settings that you omit keep their values.

Usage: liqoctl network connect --context CONTEXT --remote-context CONTEXT

Clusters:
  --context, --remote-context CONTEXT      contexts of your kubeconfig
  --kubeconfig, --remote-kubeconfig FILE   if they are in two files
  --name, --remote-name NAME               set once (default: from the context)
  --contexts CONTEXT,... [--topology mesh|hub=CONTEXT]   more than two clusters
Gateways:
  --gateways, --remote-gateways NUMBER     1 to 8 (default 2; 1 if a cluster
                                           has one Ready node or a port is set)
  --server-side remote|local               cluster that listens (default remote)
  --gw-server-service-type TYPE            LoadBalancer (default), NodePort or
                                           ClusterIP
  --gw-server-service-annotation KEY=VALUE for the load balancer of your cloud
  --gw-server-websocket, --gw-server-ingress HOST   TCP 443, if UDP is blocked
Run:
  --image IMAGE                            of the helpers (default: that of this
                                           release; other builds have none)
  --dry-run                                print the changes, make none
  --update                                 change an existing peering
  --timeout DURATION                       default 2m, more in large clusters
  -o, --output FORMAT                      text, wide, json, yaml, jsonpath=TEXT
`

// newConnectFlags adds the flags to a command.
func newConnectFlags(cmd *cobra.Command, local *cli.ClusterFlags) *connectFlags {
	f := &connectFlags{clusters: cli.NewTwoClusters(cmd, local)}
	cli.SideFlags(cmd, &f.Local, "")
	cli.SideFlags(cmd, &f.Remote, cli.RemotePrefix)
	cli.InstallFlags(cmd, &f.Installation)
	f.gateways(cmd)
	return f
}

// gateways adds the flags of gateways and of their endpoints.
func (f *connectFlags) gateways(cmd *cobra.Command) {
	ui.EnumFlag(cmd, &f.serverSide, "server-side", "cluster whose gateway is the WireGuard server (default remote)", remotePlace, localPlace)
	flags := cmd.Flags()
	ui.AddFlag(flags, &f.Local.Gateways, "gateways", "NUMBER", "gateways of the local cluster, 1 to 8 (default 2; 1 with a single Ready node or a given port)", ui.GatewayCount)
	ui.AddFlag(flags, &f.Remote.Gateways, cli.RemotePrefix+"gateways", "NUMBER", "gateways of the remote cluster, 1 to 8 (default 2; 1 with a single Ready node or a given port)", ui.GatewayCount)
	for _, g := range records.GatewaySettingTable() {
		cli.Grouped(ui.SettingFlag(cmd, g.Value(&f.GatewaySettings), g.Flag, g.Usage()), g.Group)
	}
}

func (f *connectFlags) options(env *cli.Env) (peering.ConnectOptions, error) {
	o, err := f.given()
	if err = cmp.Or(err, cli.CheckSide(o.Local), cli.CheckSide(o.Remote)); err != nil {
		return o, err
	}
	if o.Local.Cluster, o.Remote.Cluster, err = f.clusters.Connect(env); err != nil {
		return o, err
	}
	f.again = kube.Flags(o.Local.Cluster, o.Remote.Cluster)
	o.Installation = cli.Installation(env, o.Installation)
	return o, err
}

// given returns the options that the flags of a peering contain, and refuses flags that contradict each other.
func (f *connectFlags) given() (peering.ConnectOptions, error) {
	o := f.ConnectOptions
	if f.serverSide != "" {
		o.LocalServes = new(f.serverSide == localPlace)
	}
	if err := o.ValidateGiven(); err != nil {
		return o, cli.Usagef("%w", err)
	}
	if o.Local.Name != "" && o.Local.Name == o.Remote.Name {
		return o, cli.Usagef("--name and --remote-name are both %q", o.Local.Name)
	}
	return o, nil
}
