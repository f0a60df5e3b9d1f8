package commands

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// exposeFlags are the flags and the argument of `network expose` and `network withdraw`.
type exposeFlags struct {
	peer    string
	timeout time.Duration
	output  format
}

func newNetworkExpose(env *Env, local *clusterFlags, do operation[peering.ExposeOptions, peering.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:   "expose ADDRESS",
		Short: "Let a peer reach a host outside the cluster",
		Long: `Let the pods of a peer reach a host outside the cluster: a database, a virtual machine, whatever the cluster's pods
reach by its own address. The peer reaches it by an address of the cluster's external CIDR, which is printed. The
host sees a node of this cluster as the source, so that it needs no route to the peer. It ends with network withdraw,
and with the connection. Exposing again changes nothing.`,
		Example: `  liqoctl network expose 192.0.2.17 --context a --peer b`,
	}, do, describeExposure)
}

func newNetworkWithdraw(env *Env, local *clusterFlags, do operation[peering.ExposeOptions, peering.Exposure]) *cobra.Command {
	return exposeCommand(env, local, &cobra.Command{
		Use:   "withdraw ADDRESS",
		Short: "End what network expose began",
		Long: `End what network expose began. It returns when the gateway lets nothing of the peer pass to the host, flows that
were open included. A host that is not exposed is no error.`,
		Example: `  liqoctl network withdraw 192.0.2.17 --context a --peer b`,
	}, do, describeWithdrawal)
}

// exposeCommand gives either command what both have.
func exposeCommand(env *Env, local *clusterFlags, cmd *cobra.Command, do operation[peering.ExposeOptions, peering.Exposure], text func(peering.Exposure) string) *cobra.Command {
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
		return perform(cmd.Context(), env, do, o, f.output, text)
	}
	cmd.Flags().StringVar(&f.peer, "peer", "", "`NAME` of the peering, as network status shows it (required)")
	timeoutFlag(cmd.Flags(), &f.timeout)
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON, formatYAML)
	return cmd
}

func (f *exposeFlags) options(host string) (peering.ExposeOptions, error) {
	o := peering.ExposeOptions{Peer: f.peer, Timeout: f.timeout}
	if f.peer == "" {
		err := usagef("no peer given")
		err.hint = "name it with --peer: see liqoctl network status"
		return o, err
	}
	var err error
	if o.Host, err = netip.ParseAddr(host); err != nil {
		return o, usagef("%q is not an address such as 192.0.2.17", host)
	}
	return o, checkTimeout(f.timeout)
}

// describeExposure is the answer of `network expose` for people.
func describeExposure(e peering.Exposure) string {
	var b strings.Builder
	if e.Seen.IsValid() {
		writef(&b, "%s is reached from %s as %s\n", e.Host, e.Peer, e.Seen)
	} else {
		writef(&b, "%s is exposed to %s as %s, which %s may know by another range\n", e.Host, e.Peer, e.Address, e.Peer)
	}
	if !e.Changed {
		fmt.Fprintln(&b, "nothing changed")
	}
	return b.String()
}

// describeWithdrawal is the answer of `network withdraw` for people.
func describeWithdrawal(e peering.Exposure) string {
	var b strings.Builder
	if e.Changed {
		writef(&b, "%s is not reached from %s any more\n", e.Host, e.Peer)
	} else {
		writef(&b, "%s is not exposed to %s: nothing changed\n", e.Host, e.Peer)
	}
	return b.String()
}
