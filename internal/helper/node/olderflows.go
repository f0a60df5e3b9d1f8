//go:build linux

package node

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// forgetOlder deletes the conntrack entries of a node for addresses that become a peer's, or no longer are: nat chains
// see a flow's first packet only, so older flows would keep their old path. Later flows continue, whichever process of
// the helper made the routes. It is called after a pass, with the ranges that now have routes.
func (l *loop) forgetOlder(now []netip.Prefix) error {
	changed := append(without(now, l.forgotten), without(l.forgotten, now)...)
	if err := l.Kernel.FlushConntrack(changed); err != nil {
		return err
	}
	l.forgotten = now
	return nil
}

// forgetUntranslated deletes the connections to peers that began while the table was missing or flushed. It is called
// before forgetOlder, to which it leaves ranges all of whose connections will be forgotten.
func (l *loop) forgetUntranslated(s kernel.Sources) error {
	s.Peers = netops.Only(s.Peers, func(p netip.Prefix) bool { return slices.Contains(l.forgotten, p) })
	if len(s.Peers) == 0 {
		return nil
	}
	return l.Kernel.FlushWrongSources(s)
}

// without returns the elements of a list that are not in another.
func without(list, other []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return slices.Contains(other, p) })
}
