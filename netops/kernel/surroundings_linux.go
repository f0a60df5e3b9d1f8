package kernel

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// Surroundings are the IPv4 addresses in use in a namespace, without ours. They are unsorted and may repeat.
type Surroundings struct {
	Routes    []netip.Prefix // destinations of routes in all tables, without default routes and routes of our links
	Addresses []netip.Addr   // local addresses, also those outside the links' ranges
}

// Surroundings reads the addresses in use. It reads all routes of the namespace.
func (k *Kernel) Surroundings() (s Surroundings, err error) {
	links, err := k.route.links()
	if err != nil {
		return s, fmt.Errorf("read routes: %w", err)
	}
	request := message{kind: unix.RTM_GETROUTE, header: unix.RtMsg{Family: unix.AF_INET}}
	_, err = collect(k.route, request, func(data []byte) (none struct{}, of bool, err error) {
		r, header, err := decodeRoute(data, links)
		switch {
		case err != nil || header.Protocol == netops.Protocol || strings.HasPrefix(r.Link, netops.Prefix) || r.Dst.Bits() == 0:
		case header.Type == unix.RTN_LOCAL && r.Dst.IsSingleIP():
			s.Addresses = append(s.Addresses, r.Dst.Addr())
		case header.Type != unix.RTN_LOCAL && header.Type != unix.RTN_BROADCAST && header.Type != unix.RTN_MULTICAST:
			s.Routes = append(s.Routes, r.Dst)
		}
		return none, false, err
	})
	if err != nil {
		err = fmt.Errorf("read routes: %w", err)
	}
	return s, err
}
