package ipam

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/ipam"
)

// ipamList is the answer of `ipam list`.
type ipamList struct {
	Pools []netip.Prefix `json:"pools"` // for free ranges
	// For an address in the request: the smallest range that contains it.
	Holder       *ipam.Reservation  `json:"holder,omitempty"`
	Reservations []ipam.Reservation `json:"reservations"` // sorted by range, wider ones first
}

// listFilter selects reservations. The zero value selects all.
type listFilter struct {
	overlapping netip.Prefix // an address is a range of its length
	owner       ipam.Owner
}

func newIPAMList(env *cli.Env, connect connector) *cobra.Command {
	return reservationCommand(env, connect, &cobra.Command{
		Use:   "list [ADDRESS|CIDR|OWNER]",
		Short: "List reservations, or those of an ADDRESS, CIDR or OWNER",
		Long: `List the CIDRs of a cluster that are in use or reserved: its own, and the remapped CIDRs of its peers. For a remapped
CIDR the list also shows the original.

With an address or a CIDR, the list has the CIDRs that overlap it. The owner of an address is that of the smallest CIDR
that contains it. An owner is cluster, peering/NAME or user/NAME.`,
		Example: `  liqoctl ipam list --context a -o wide
  liqoctl ipam list 10.71.3.7
  liqoctl ipam list peering/b -o json`,
		Args: cli.Arguments("[ADDRESS|CIDR|OWNER]"),
	}, func(args []string) (onReservations, error) {
		var f listFilter
		var err error
		if len(args) > 0 {
			f, err = readListFilter(args[0])
		}
		return f.list, err
	})
}

func readListFilter(text string) (listFilter, error) {
	if owner := ipam.Owner(text); owner.Validate() == nil {
		return listFilter{owner: owner}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return listFilter{overlapping: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return listFilter{}, cli.Usagef("%q is not an IP address, a CIDR such as 10.244.0.0/16, cluster, peering/NAME or user/NAME", text)
	}
	return listFilter{overlapping: p.Masked()}, nil
}

func (f listFilter) list(ctx context.Context, c *kube.Cluster) (reservations, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return reservations{}, err
	}
	list, none, summary := ipamList{Pools: registry.Pools()}, "", ""
	switch {
	case f.owner != "":
		list.Reservations, none = registry.Held(f.owner), fmt.Sprintf("%s holds nothing", f.owner)
	case f.overlapping.IsValid():
		list.Reservations, none = registry.Overlapping(f.overlapping), fmt.Sprintf("%s is free", f.overlapping)
		if holder, ok := registry.OwnerOf(f.overlapping.Addr()); ok && f.overlapping.IsSingleIP() {
			list.Holder, summary = &holder, fmt.Sprintf("%s is held: %s %s", f.overlapping.Addr(), holder.Use(), holder.Range)
		}
	default:
		list.Reservations = registry.List()
	}
	if len(list.Reservations) == 0 {
		list.Reservations, summary = []ipam.Reservation{}, none // in JSON a list as well
	}
	return reservations{document: list, summary: summary, all: list.Reservations, table: true}, nil
}
