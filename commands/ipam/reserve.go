package ipam

import (
	"context"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/ipam"
)

func newIPAMReserve(env *cli.Env, connect connector) *cobra.Command {
	want := ipam.Reservation{Owner: ipam.Cluster, Purpose: ipam.Reserved}
	var owner ipam.Owner
	cmd := &cobra.Command{
		Use:   "reserve CIDR",
		Short: "Reserve a CIDR so that no peer is remapped to it",
		Long: `Reserve a CIDR that is used for something else than peers: a VPN, a data centre, a test. The command rejects a CIDR that
overlaps one of another owner, and names that owner. Reserving a CIDR again changes nothing.`,
		Example: `  liqoctl ipam reserve 10.9.0.0/16
  liqoctl ipam reserve 10.9.0.0/16 --owner vpn`,
		Args: cli.Arguments("CIDR"),
	}
	ownerFlag(cmd, &owner, "owner of the CIDR (default: the cluster)")
	ui.BoolFlag(cmd.Flags(), &want.Shared, "shared", "allow overlap with other shared CIDRs, such as those of nodes and pods")
	return changingReservations(env, connect, cmd, func(args []string) (_ onReservations, err error) {
		if want.Range, err = ui.ParsePrefix(args[0]); err != nil {
			return nil, cli.Usagef("%w", err)
		}
		if owner != "" {
			want.Owner = owner
		}
		if err := want.Validate(); err != nil {
			return nil, cli.Usagef("%w", err)
		}
		return func(ctx context.Context, c *kube.Cluster) (reservations, error) {
			err := addReservations(ctx, c, func(r *ipam.Registry) error { return r.Reserve(want) })
			return reservations{document: want, all: []ipam.Reservation{want}}, err
		}, nil
	})
}
