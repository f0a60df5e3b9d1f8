package status

import (
	"context"
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
)

// GuardedRanges are those by which a cluster reaches all its peers, and which its nodes guard. None is an error.
func GuardedRanges(ctx context.Context, c *cluster.Cluster) ([]netip.Prefix, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	peerings, err := inventory.Peerings(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(peerings) == 0 {
		if _, err := inventory.CheckElsewhere(ctx, c); err != nil {
			return nil, err
		}
		return nil, hint.With(fmt.Errorf("cluster %q has no peerings", c.Context), "connect it first: liqoctl network connect")
	}
	var all []netip.Prefix
	for _, p := range peerings {
		all = append(all, p.Seen()...)
	}
	return all, nil
}
