//go:build linux

package node

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
	// done are the ranges whose older connections were forgotten. At first these are the destinations of routes: an
	// earlier process forgot them, unless it was killed within the milliseconds between both.
	done []netip.Prefix
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

// forgetUntranslated deletes the connections to peers that began while the table was missing or flushed. It is called
// before forget, to which it leaves ranges all of whose connections will be forgotten.
func (o *olderFlows) forgetUntranslated(s kernel.Sources) error {
	s.Peers = netops.Only(s.Peers, func(p netip.Prefix) bool { return slices.Contains(o.done, p) })
	if len(s.Peers) == 0 {
		return nil
	}
	return o.kernel.FlushWrongSources(s)
}

// without returns the elements of a list that are not in another.
func without(list, other []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return slices.Contains(other, p) })
}
