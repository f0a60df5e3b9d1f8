package netops

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops/nft"
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
		{"addresses", func() (err error) { s.Addresses, err = k.route.addresses(links); return err }},
		{"neighbours", func() (err error) { s.Neighbours, err = k.route.neighbours(links); return err }},
		{"nexthops", func() (err error) { s.Nexthops, err = k.route.nexthops(links); return err }},
		{"routes", func() (err error) { s.Routes, err = k.route.routes(names); return err }},
		{"rules", func() (err error) { s.Rules, s.LocalRuleMoved, err = k.route.rules(); return err }},
		{"firewall", func() (err error) { s.Firewall, err = k.nft.Observe(nft.IP, Table); return err }},
		{"firewall of IPv6", func() (err error) { s.Firewall6, err = k.nft.Observe(nft.IP6, Table); return err }},
		{"firewalls of others", func() (err error) { s.ForwardChains, err = k.nft.ForwardChains(Table); return err }},
	}
	for _, r := range reads {
		if err := r.read(); err != nil {
			return State{}, fmt.Errorf("read %s: %w", r.what, err)
		}
	}
	slices.SortFunc(s.Links, Link.compare)
	return s, nil
}

// addressLabel marks an address of the loopback device as ours.
const addressLabel = loopback + ":lqn"

// addresses reads the IPv4 addresses of our links, and those of the loopback device that bear our label.
func (s *routeSocket) addresses(links map[int]Link) ([]Address, error) {
	own := func(l Link) bool { return l.ours() || l.Name == loopback }
	return ofLinks(links, own, func(index int, l Link) ([]Address, error) {
		request := message{kind: unix.RTM_GETADDR, header: unix.IfAddrmsg{Family: unix.AF_INET, Index: uint32(index)}}
		return collect(s, request, func(data []byte) (Address, bool, error) {
			prefix, label, err := decodeAddress(data)
			return Address{Link: l.Name, Prefix: prefix}, l.ours() || label == addressLabel, err
		})
	})
}

func decodeAddress(data []byte) (p netip.Prefix, label string, err error) {
	var header unix.IfAddrmsg
	ad, err := split(data, &header)
	if err != nil {
		return p, "", err
	}
	var local []byte
	for ad.Next() {
		switch ad.Type() {
		case unix.IFA_LOCAL:
			local = ad.Bytes()
		case unix.IFA_LABEL:
			label = ad.String()
		}
	}
	return prefixOf(local, header.Prefixlen), label, ad.Err()
}

// neighbours reads the permanent neighbours of our links.
func (s *routeSocket) neighbours(links map[int]Link) ([]Neighbour, error) {
	return ofLinks(links, Link.ours, func(index int, l Link) ([]Neighbour, error) {
		request := message{
			kind:   unix.RTM_GETNEIGH,
			header: unix.NdMsg{Family: unix.AF_INET},
			attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.NDA_IFINDEX, uint32(index)) },
		}
		return collect(s, request, func(data []byte) (Neighbour, bool, error) {
			n, permanent, err := decodeNeighbour(data)
			n.Link = l.Name
			return n, permanent, err
		})
	})
}

func decodeNeighbour(data []byte) (n Neighbour, permanent bool, err error) {
	var header unix.NdMsg
	ad, err := split(data, &header)
	if err != nil {
		return n, false, err
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NDA_DST:
			n.IP, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.NDA_LLADDR:
			n.MAC = net.HardwareAddr(ad.Bytes())
		}
	}
	return n, header.State == unix.NUD_PERMANENT, ad.Err()
}

// ofLinks reads what belongs to some links, each by itself: the kernel leaves out what belongs to others, however much
// that is.
func ofLinks[T any](links map[int]Link, which func(Link) bool, read func(index int, l Link) ([]T, error)) (found []T, err error) {
	for index, l := range links {
		if !which(l) {
			continue
		}
		some, err := read(index, l)
		if err != nil && !errors.Is(err, unix.ENODEV) { // a link that went meanwhile has nothing any more
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}
