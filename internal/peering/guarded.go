package peering

import (
	"context"
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
)

// GuardedRanges are those by which a cluster reaches all its peers, and which its nodes guard. None is an error.
func GuardedRanges(ctx context.Context, side Side) ([]netip.Prefix, error) {
	if err := side.Cluster.Reach(ctx); err != nil {
		return nil, err
	}
	peerings, err := inventory.Peerings(ctx, side.Cluster)
	if err != nil {
		return nil, err
	}
	if len(peerings) == 0 {
		if _, err := inventory.CheckElsewhere(ctx, side.Cluster); err != nil {
			return nil, err
		}
		return nil, hint.With(fmt.Errorf("cluster %q has no peerings", side.Cluster.Context), "connect it first: liqoctl network connect")
	}
	var all []netip.Prefix
	for _, p := range peerings {
		all = append(all, p.Seen()...)
	}
	return all, nil
}
