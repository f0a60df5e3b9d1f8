//go:build linux

package node

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// apiServerSlice is the EndpointSlice of the API servers, in namespace default, which they maintain themselves.
const apiServerSlice = "kubernetes"

// servers returns the IPv4 addresses of the API server: the remote addresses of this helper's connections, which may be
// a Service's, and those in the API servers' EndpointSlice.
func (l *loop) servers(slice *discoveryv1.EndpointSlice) []netip.Addr {
	all := l.APIServers()
	if slice != nil {
		for _, e := range slice.Endpoints {
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					all = append(all, a)
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(a netip.Addr) bool { return !a.Is4() })
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}
