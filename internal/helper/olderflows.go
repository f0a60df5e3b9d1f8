//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// olderFlows deletes the conntrack entries of a node for addresses that become a peer's, or no longer are: nat chains
// see a flow's first packet only, so older flows would keep their old path. Later flows continue, whichever process of
// the helper made the routes.
type olderFlows struct {
	kernel *kernel.Kernel
	begun  bool           // done is known
	done   []netip.Prefix // ranges whose older connections were forgotten
}

// begin is called before each pass. The first time it takes the destinations of existing routes as done: an earlier
// process forgot older connections, unless it was killed within the milliseconds between both.
func (o *olderFlows) begin() error {
	if o.begun {
		return nil
	}
	have, err := o.kernel.Observe()
	if err != nil {
		return fmt.Errorf("observe kernel: %w", err)
	}
	for _, r := range have.Routes {
		if r.Table == netops.RoutingTable && !slices.Contains(o.done, r.Dst) {
			o.done = append(o.done, r.Dst)
		}
	}
	o.begun = true
	return nil
}

// forget is called after a pass, with the ranges that now have routes.
func (o *olderFlows) forget(now []netip.Prefix) error {
	if changed := append(without(now, o.done), without(o.done, now)...); len(changed) > 0 {
		if err := o.kernel.FlushConntrack(changed); err != nil {
			return fmt.Errorf("forget connections to %v: %w", changed, err)
		}
	}
	o.done = now
	return nil
}

// without returns the elements of a list that are not in another.
func without(list, other []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return slices.Contains(other, p) })
}
