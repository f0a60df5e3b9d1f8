package kernel

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// Observe reads our state from the kernel, and all links of the namespace (see Link).
func (k *Kernel) Observe() (netops.State, error) {
	links, err := k.route.links()
	if err != nil {
		return netops.State{}, fmt.Errorf("read links: %w", err)
	}
	var s netops.State
	s.Links = slices.SortedFunc(maps.Values(links), netops.Link.Compare)
	reads := []struct {
		what string
		read func() error
	}{
		{"addresses", func() (err error) { s.Addresses, err = k.route.addresses(links); return err }},
		{"neighbours", func() (err error) { s.Neighbours, err = k.route.neighbours(links); return err }},
		{"nexthops", func() (err error) { s.Nexthops, err = k.route.nexthops(links); return err }},
		{"nexthop groups", func() (err error) { s.Groups, err = k.route.nexthopGroups(); return err }},
		{"routes", func() (err error) { s.Routes, err = k.route.routes(links); return err }},
		{"rules", func() (err error) { s.Rules, s.LocalRuleMoved, err = k.route.rules(); return err }},
		{"firewall", func() (err error) { s.Firewall, err = k.nft.Observe(nft.IP, netops.Table); return err }},
		{"firewall of IPv6", func() (err error) { s.Firewall6, err = k.nft.Observe(nft.IP6, netops.Table); return err }},
		{"firewalls of others", func() (err error) { s.ForwardChains, err = k.nft.ForwardChains(netops.Table); return err }},
	}
	for _, r := range reads {
		if err := r.read(); err != nil {
			return netops.State{}, fmt.Errorf("read %s: %w", r.what, err)
		}
	}
	return s, nil
}

// ofLinks reads objects of some links, with one request per link: the kernel filters the objects of other links, so
// that their number does not matter.
func ofLinks[T any](links map[int]netops.Link, which func(netops.Link) bool, read func(index int, l netops.Link) ([]T, error)) (found []T, err error) {
	for index, l := range links {
		if !which(l) {
			continue
		}
		some, err := read(index, l)
		if err != nil && !errors.Is(err, unix.ENODEV) { // the link was removed in the meantime
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}
