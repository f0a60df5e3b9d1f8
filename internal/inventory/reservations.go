package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	held, conflict := ConflictOf(err)
	switch {
	case hint.Of(err) != "":
	case errors.Is(err, ipam.ErrNoneFree):
		err = hint.With(err, NoneFreeHint)
	case conflict:
		err = hint.With(err, "show the holder with liqoctl ipam show "+held.Range.String())
	case apierrors.IsNotFound(err):
		err = hint.With(err, "install liqonet first: liqoctl network init")
	}
	return fmt.Errorf("addresses of cluster %q: %w", context, err)
}

// NoneFreeHint is the advice where no range is free.
const NoneFreeHint = "add pools with --pool or --remote-pool (in an installed cluster: liqoctl network init --pool CIDR,... --update), or release ranges: liqoctl ipam list"

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
