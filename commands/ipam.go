package commands

import (
	"context"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/peering"
)

// connector makes the clients of the cluster that the flags choose, once they are read, and finds out whether it answers.
type connector func(context.Context) (*cluster.Cluster, error)

func newIPAM(env *Env) *cobra.Command {
	cmd := group("ipam", "Show and decide which addresses a cluster uses for what", `Show and decide which addresses a cluster uses for what. Every range has one owner: the cluster itself, a peering, or a
name that a user chose.`)
	flags := newClusterFlags()
	flags.register(cmd, cmd.PersistentFlags())
	connect := func(ctx context.Context) (*cluster.Cluster, error) { return flags.reach(ctx, env) }
	cmd.AddCommand(
		newIPAMList(env, connect),
		newIPAMShow(env, connect),
		newIPAMReserve(env, connect),
		newIPAMAcquire(env, connect),
		newIPAMRelease(env, connect),
		newIPAMCheck(env, connect, peering.CheckAddresses),
		newIPAMTranslate(env, flags),
	)
	return cmd
}
