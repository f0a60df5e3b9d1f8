package peering

import (
	"context"
	"errors"
	"fmt"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"

	"cmp"
	"slices"
)

// loadReservations returns a cluster's reservations.
func loadReservations(ctx context.Context, c *cluster.Cluster) (*ipam.Registry, error) {
	registry, err := store.Over(c.ConfigMaps(), c.Namespace).Load(ctx)
	return registry, explainAddresses(c.Context, err)
}

// updateReservations changes a cluster's reservations. change is called again where somebody else changes them, too.
func updateReservations(ctx context.Context, c *cluster.Cluster, change func(*ipam.Registry) error) error {
	return explainAddresses(c.Context, store.Over(c.ConfigMaps(), c.Namespace).Update(ctx, change))
}

// explainAddresses adds to an error of the registry what the user can do.
func explainAddresses(context string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ipam.ErrNoneFree) {
		err = hint.With(err, cmp.Or(hint.Of(err), noneFreeHint))
	} else if held, ok := conflictOf(err); ok {
		err = hint.With(err, "show the holder with liqoctl ipam show "+held.Range.String())
	}
	return fmt.Errorf("addresses of cluster %q: %w", context, err)
}

// noneFreeHint is the advice where no range is free.
const noneFreeHint = "give it more ranges with --pool or --remote-pool, or free some: liqoctl ipam list, liqoctl network disconnect"

// conflictOf returns the reservation because of which another one was refused.
func conflictOf(err error) (ipam.Reservation, bool) {
	if conflict, ok := errors.AsType[*ipam.ConflictError](err); ok {
		return conflict.Held, true
	}
	return ipam.Reservation{}, false
}

// reservedPeerings returns the names of the peerings that hold something, sorted.
func reservedPeerings(r *ipam.Registry) []string {
	var names []string
	for _, h := range r.List() {
		if name, ok := h.Owner.Peering(); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return slices.Compact(names)
}
