package status

import (
	"context"
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// Guarded are the ranges by which a cluster reaches all its peers, and which its nodes guard, and the port of its overlay.
// No ranges are an error.
func Guarded(ctx context.Context, c *cluster.Cluster) (ranges []netip.Prefix, overlayPort uint16, err error) {
	if err := c.Reach(ctx); err != nil {
		return nil, 0, err
	}
	peerings, err := inventory.Peerings(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	if len(peerings) == 0 {
		if _, err := inventory.CheckElsewhere(ctx, c); err != nil {
			return nil, 0, err
		}
		return nil, 0, hint.With(fmt.Errorf("cluster %q has no peerings", c.Context), "connect it first: liqoctl network connect")
	}
	for _, p := range peerings {
		ranges = append(ranges, p.Seen()...)
	}
	fabric, err := inventory.Fabric(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	if overlayPort = records.DefaultOverlayPort; fabric != nil {
		overlayPort = fabric.Overlay.Port
	}
	return ranges, overlayPort, nil
}
