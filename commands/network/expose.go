package network

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
)

func newExpose(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[expose.Options, expose.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:   "expose ADDRESS",
		Short: "Expose a host outside the cluster to a peer",
		Long: `Expose a host outside the cluster to the pods of a peer: a database, a virtual machine, any host that pods of this
cluster reach. The peer reaches it at an address of this cluster's external CIDR, which is printed. The host sees an
address of a node of this cluster as the source, so it needs no route to the peer.

network unexpose and network disconnect remove it. Exposing a host again changes nothing.`,
		Example: `  liqoctl network expose 192.0.2.17 --context a --peer b

  # The address at which pods of b reach the host
  liqoctl network expose 192.0.2.17 --context a --peer b -o jsonpath={.reachedAt}`,
	}, do, expose.PlanExpose, describeExposure)
}

func newUnexpose(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[expose.Options, expose.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:     "unexpose ADDRESS",
		Aliases: []string{"withdraw"},
		Short:   "Stop exposing a host to a peer",
		Long: `Stop exposing a host to a peer. The command returns when the gateway no longer forwards packets of the peer to the host;
open connections end too. It is not an error if the host is not exposed.`,
		Example: `  liqoctl network unexpose 192.0.2.17 --context a --peer b`,
	}, do, expose.PlanWithdraw, describeUnexposure)
}

// exposeCommand gives either command what both have.
func exposeCommand(env *cli.Env, local *cli.ClusterFlags, cmd *cobra.Command, do cli.Operation[expose.Options, expose.Exposure],
	plan cli.Operation[expose.Options, plan.Plan], text func(*strings.Builder, expose.Exposure),
) *cobra.Command {
	var o expose.Options
	cmd.Args = cli.Arguments("ADDRESS")
	ui.TextFlag(cmd.Flags(), &o.Peer, "peer", "NAME", "name of the peer, as in network status (required)", nil)
	return cli.Action[expose.Options, expose.Exposure]{
		Do: do, Plan: plan, Text: text, Timeout: &o.Timeout,
		Options: func(args []string) (_ expose.Options, err error) {
			if o.Peer == "" {
				err := cli.Usagef("--peer is required")
				err.Advice = "liqoctl network status lists the peers"
				return o, err
			}
			if o.Host, err = netip.ParseAddr(args[0]); err != nil {
				return o, cli.Usagef("%q is not an IP address such as 192.0.2.17", args[0])
			}
			o.Cluster, err = local.Connect(env)
			return o, err
		},
	}.Command(env, cmd)
}

// describeExposure is the answer of `network expose` for people.
func describeExposure(b *strings.Builder, e expose.Exposure) {
	if e.ReachedAt.IsValid() {
		ui.Writef(b, "%s is exposed to %s as %s\n", e.Host, e.Peer, e.ReachedAt)
	} else {
		ui.Writef(b, "%s is exposed to %s as %s, which %s may have remapped\n", e.Host, e.Peer, e.Address, e.Peer)
	}
	if !e.Changed {
		fmt.Fprintln(b, "nothing changed")
	}
}

// describeUnexposure is the answer of `network unexpose` for people.
func describeUnexposure(b *strings.Builder, e expose.Exposure) {
	if e.Changed {
		ui.Writef(b, "%s is no longer exposed to %s\n", e.Host, e.Peer)
	} else {
		ui.Writef(b, "%s is not exposed to %s: nothing changed\n", e.Host, e.Peer)
	}
}
