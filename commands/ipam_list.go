package commands

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/ipam"
)

// ipamList is the answer of `ipam list`.
type ipamList struct {
	Pools        []netip.Prefix     `json:"pools"`        // from which free ranges are taken
	Reservations []ipam.Reservation `json:"reservations"` // sorted by range
}

func newIPAMList(env *Env, connect connector) *cobra.Command {
	return reservationCommand(env, connect, &cobra.Command{
		Use:   "list",
		Short: "List the address ranges that are in use or reserved",
		Long: `List the address ranges of a cluster that are in use or reserved: its own, and the remapped CIDRs of its peers. For a
remapped CIDR the list also shows the real one.`,
		Example: `  liqoctl ipam list --context a -o wide`,
		Args:    arguments(),
	}, func([]string) (func(context.Context, *cluster.Cluster) (reservations, error), error) {
		return listReservations, nil
	})
}

func listReservations(ctx context.Context, c *cluster.Cluster) (reservations, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return reservations{}, err
	}
	list := ipamList{Pools: registry.Pools(), Reservations: registry.List()}
	return reservations{document: list, all: list.Reservations, table: true}, nil
}
