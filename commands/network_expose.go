package commands

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// exposeFlags are the flags and the argument of `network expose` and `network unexpose`.
type exposeFlags struct {
	peer    string
	dryRun  bool
	timeout time.Duration
	output  format
}

func newNetworkExpose(env *Env, local *clusterFlags, do operation[peering.ExposeOptions, peering.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:   "expose ADDRESS",
		Short: "Expose a host outside the cluster to a peer",
		Long: `Expose a host outside the cluster to the pods of a peer: a database, a virtual machine, any host that pods of this
cluster reach. The peer reaches it at an address of this cluster's external CIDR, which is printed. The host sees an
address of a node of this cluster as the source, so it needs no route to the peer.

network unexpose ends it, and so does removing the peering. Exposing a host again changes nothing.`,
		Example: `  liqoctl network expose 192.0.2.17 --context a --peer b

  # The address at which pods of b reach the host
  liqoctl network expose 192.0.2.17 --context a --peer b -o jsonpath={.seenByPeer}`,
	}, do, peering.PlanExpose, describeExposure)
}

func newNetworkUnexpose(env *Env, local *clusterFlags, do operation[peering.ExposeOptions, peering.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:     "unexpose ADDRESS",
		Aliases: []string{"withdraw"},
		Short:   "Stop exposing a host to a peer",
		Long: `Stop exposing a host to a peer. The command returns when the gateway no longer forwards packets of the peer to the host;
open connections end too. It is not an error if the host is not exposed.`,
		Example: `  liqoctl network unexpose 192.0.2.17 --context a --peer b`,
	}, do, peering.PlanWithdraw, describeUnexposure)
}

// exposeCommand gives either command what both have.
func exposeCommand(env *Env, local *clusterFlags, cmd *cobra.Command, do operation[peering.ExposeOptions, peering.Exposure],
	plan operation[peering.ExposeOptions, peering.Plan], text func(peering.Exposure) string,
) *cobra.Command {
	f := exposeFlags{output: formatText}
	cmd.Args = arguments("ADDRESS")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.options(args[0])
		if err != nil {
			return err
		}
		if o.Side.Cluster, err = local.connect(env); err != nil {
			return err
		}
		if f.dryRun {
			return perform(cmd.Context(), env, dryly(plan), o, f.output, describeDryRun)
		}
		return perform(cmd.Context(), env, do, o, f.output, text)
	}
	textFlag(cmd.Flags(), &f.peer, "peer", "NAME", "name of the peer, as in network status (required)", nil)
	dryRunFlag(cmd, &f.dryRun)
	timeoutFlag(cmd.Flags(), &f.timeout)
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *exposeFlags) options(host string) (peering.ExposeOptions, error) {
	o := peering.ExposeOptions{Peer: f.peer, Timeout: f.timeout}
	if f.peer == "" {
		err := usagef("--peer is required")
		err.hint = "liqoctl network status lists the peers"
		return o, err
	}
	var err error
	if o.Host, err = netip.ParseAddr(host); err != nil {
		return o, usagef("%q is not an IP address such as 192.0.2.17", host)
	}
	return o, nil
}

// describeExposure is the answer of `network expose` for people.
func describeExposure(e peering.Exposure) string {
	var b strings.Builder
	if e.Seen.IsValid() {
		writef(&b, "%s is exposed to %s as %s\n", e.Host, e.Peer, e.Seen)
	} else {
		writef(&b, "%s is exposed to %s as %s, which %s may have remapped\n", e.Host, e.Peer, e.Address, e.Peer)
	}
	if !e.Changed {
		fmt.Fprintln(&b, "nothing changed")
	}
	return b.String()
}

// describeUnexposure is the answer of `network unexpose` for people.
func describeUnexposure(e peering.Exposure) string {
	var b strings.Builder
	if e.Changed {
		writef(&b, "%s is no longer exposed to %s\n", e.Host, e.Peer)
	} else {
		writef(&b, "%s is not exposed to %s: nothing changed\n", e.Host, e.Peer)
	}
	return b.String()
}
