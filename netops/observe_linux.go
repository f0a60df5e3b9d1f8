package netops

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Observe reads what of ours is in the kernel, and all links of the namespace (see Link).
func (k *Kernel) Observe() (State, error) {
	links, err := k.route.links()
	if err != nil {
		return State{}, fmt.Errorf("read links: %w", err)
	}
	var s State
	names := make(map[int]string, len(links))
	for index, l := range links {
		names[index] = l.Name
		s.Links = append(s.Links, l)
	}
	reads := []struct {
		what string
		read func() error
	}{
		{"addresses", func() (err error) { s.Addresses, err = k.addresses(links); return err }},
		{"neighbours", func() (err error) { s.Neighbours, err = k.neighbours(links); return err }},
		{"nexthops", func() (err error) { s.Nexthops, err = k.route.nexthops(names); return err }},
		{"routes", func() (err error) { s.Routes, err = k.route.routes(names); return err }},
		{"rules", func() (err error) { s.Rules, s.LocalRuleMoved, err = k.route.rules(); return err }},
		{"firewall", func() (err error) { s.Firewall, err = k.nft.Observe(Table); return err }},
	}
	for _, r := range reads {
		if err := r.read(); err != nil {
			return State{}, fmt.Errorf("read %s: %w", r.what, err)
		}
	}
	slices.SortFunc(s.Links, Link.compare)
	return s, nil
}

// addresses reads the IPv4 addresses of our links.
func (k *Kernel) addresses(links map[int]Link) ([]Address, error) {
	var all []netlink.Addr
	err := consistently(func() (err error) {
		all, err = k.library.AddrList(nil, unix.AF_INET)
		return err
	})
	var found []Address
	for _, a := range all {
		if l := links[a.LinkIndex]; l.ours() {
			addr, _ := netip.AddrFromSlice(a.IP.To4())
			ones, _ := a.Mask.Size()
			found = append(found, Address{Link: l.Name, Prefix: netip.PrefixFrom(addr, ones)})
		}
	}
	return found, err
}

// neighbours reads the permanent neighbours of our links.
func (k *Kernel) neighbours(links map[int]Link) ([]Neighbour, error) {
	var all []netlink.Neigh
	err := consistently(func() (err error) {
		all, err = k.library.NeighList(0, unix.AF_INET)
		return err
	})
	var found []Neighbour
	for _, n := range all {
		if l := links[n.LinkIndex]; l.ours() && n.State == netlink.NUD_PERMANENT {
			ip, _ := netip.AddrFromSlice(n.IP.To4())
			found = append(found, Neighbour{Link: l.Name, IP: ip, MAC: n.HardwareAddr})
		}
	}
	return found, err
}
