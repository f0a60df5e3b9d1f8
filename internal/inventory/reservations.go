package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// Reservations returns a cluster's reservations.
func Reservations(ctx context.Context, c *cluster.Cluster) (*ipam.Registry, error) {
	registry, err := store.Over(c.ConfigMaps(), c.Namespace).Load(ctx)
	return registry, ExplainAddresses(c.Context, err)
}

// UpdateReservations changes a cluster's reservations. change is called again where somebody else changes them, too.
func UpdateReservations(ctx context.Context, c *cluster.Cluster, change func(*ipam.Registry) error) error {
	return ExplainAddresses(c.Context, store.Over(c.ConfigMaps(), c.Namespace).Update(ctx, change))
}

// ExplainAddresses adds to an error of the registry what the user can do.
func ExplainAddresses(context string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ipam.ErrNoneFree) {
		err = hint.With(err, cmp.Or(hint.Of(err), NoneFreeHint))
	} else if held, ok := ConflictOf(err); ok {
		err = hint.With(err, "show the holder with liqoctl ipam show "+held.Range.String())
	}
	return fmt.Errorf("addresses of cluster %q: %w", context, err)
}

// NoneFreeHint is the advice where no range is free.
const NoneFreeHint = "give it more ranges with --pool or --remote-pool, or free some: liqoctl ipam list, liqoctl network disconnect"

// ConflictOf returns the reservation because of which another one was refused.
func ConflictOf(err error) (ipam.Reservation, bool) {
	if conflict, ok := errors.AsType[*ipam.ConflictError](err); ok {
		return conflict.Held, true
	}
	return ipam.Reservation{}, false
}

// ReservedPeerings returns the names of the peerings that hold something, sorted.
func ReservedPeerings(r *ipam.Registry) []string {
	var names []string
	for _, h := range r.List() {
		if name, ok := h.Owner.Peering(); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return slices.Compact(names)
}
