package spec

import "net/netip"

// OutsideNetwork is a network beyond the router, of no cluster: TEST-NET-1 of RFC 5737. One machine is in it.
var OutsideNetwork = netip.MustParsePrefix("192.0.2.0/24")

// Offsets in the network outside.
const (
	outsideRouterOffset = 1
	outsideHostOffset   = 17
	outsideHosts        = 2
)

// OutsideRouter is the way from the network outside to the clusters.
func OutsideRouter() netip.Addr { return nth(OutsideNetwork, outsideRouterOffset) }

// OutsideHosts are the addresses of the machine outside, which acts as several hosts.
func OutsideHosts() []netip.Addr {
	all := make([]netip.Addr, outsideHosts)
	for i := range all {
		all[i] = nth(OutsideNetwork, outsideHostOffset+i)
	}
	return all
}
