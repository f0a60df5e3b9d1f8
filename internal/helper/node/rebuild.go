//go:build linux

package node

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
)

// rebuild stores a peering, and where its gateways are, as an earlier process left them in the kernel: it goes on,
// whatever this process can read of its records. The kernel has the part of them that node helpers use, except for the
// gateway mode and the peer's nodes that answer probes.
//
// Its own record, if it can be read, says which path is its own, else the reservations do.
func (m *lastValid) rebuild(o objects, name string, read map[string]serving.Record) {
	if r := read[name]; r.Err == nil {
		external := []netip.Prefix{r.Peering.Peer.ExternalCIDR().Seen}
		if m.rebuildFrom(o, name, r.Peering.Seen(), external, func(number int) bool { return number == r.Peering.Number }) {
			return
		}
	}
	m.rebuildFrom(o, name, m.reserved.ranges[name], m.reserved.external[name], func(number int) bool { return !m.ofAnother(name, number, read) })
}

// ofAnother reports whether a number is reserved for another peering, or in a readable record of another one: then the
// reservations are exchanged, and the path is that of the other peering.
func (m *lastValid) ofAnother(name string, number int, read map[string]serving.Record) bool {
	block := records.GatewayAddresses(m.fabric.InternalCIDR(), number)
	for other, reserved := range m.reserved.gateways {
		if other != name && reserved == block {
			return true
		}
	}
	for other, r := range read {
		if other != name && r.Err == nil && r.Peering.Number == number {
			return true
		}
	}
	return false
}

// rebuildFrom stores the peering to whose ranges the kernel has a path, and reports whether there is one whose number
// is accepted. One of externals is its external CIDR.
func (m *lastValid) rebuildFrom(o objects, name string, ranges, externals []netip.Prefix, accepts func(number int) bool) bool {
	found := netops.PeerFrom(*o.found, m.fabric.InternalCIDR(), ranges)
	routed := netops.Only(externals, func(p netip.Prefix) bool { return slices.Contains(found.CIDRs, p) })
	if len(routed) == 0 {
		return false
	}
	number, external := records.NumberOf(m.fabric.InternalCIDR(), found.Gateways[0].Internal), routed[0]
	if !accepts(number) {
		return false
	}
	p := records.Peering{Name: name, Number: number, MTU: found.MTU, Peer: records.Peer{ExternalCIDRs: []records.Mapping{{Seen: external}}}}
	for _, seen := range found.CIDRs {
		if seen != external {
			p.Peer.PodCIDRs = append(p.Peer.PodCIDRs, records.Mapping{Seen: seen})
		}
	}
	var endpoints []netip.AddrPort
	var tunnels []records.Tunnel
	for _, a := range found.Endpoints {
		endpoint := netip.AddrPortFrom(a, 1) // nodes do not use the port
		endpoints, tunnels = append(endpoints, endpoint), append(tunnels, records.Tunnel{Endpoints: []string{endpoint.String()}})
	}
	for _, id := range records.GatewayIDs(name, records.MaxGateways) {
		i := slices.IndexFunc(found.Gateways, func(g netops.NodeGateway) bool {
			return g.Internal == p.GatewayAddress(m.fabric.InternalCIDR(), id.Number)
		})
		if i < 0 {
			continue
		}
		for len(p.Gateways) < id.Number {
			p.Gateways = append(p.Gateways, records.LocalGateway{Tunnels: tunnels})
		}
		_, known := m.gateways[id]
		if at, ok := o.gatewayAt(id, found.Gateways[i].Pod); ok && !known {
			if len(endpoints) > 0 {
				at.Endpoint, at.OtherEndpoints = endpoints[0], endpoints[1:]
			}
			m.gateways[id] = located{gateway: at}
		}
	}
	if _, known := m.peerings[name]; !known {
		m.peerings[name] = p
	}
	return true
}

// gatewayAt returns where a gateway is whose pod has an address, and false if it has no such pod.
func (o objects) gatewayAt(id records.GatewayID, a netip.Addr) (records.Gateway, bool) {
	for _, pod := range o.gateways {
		if g := (records.Gateway{Pod: pod.Name, Node: pod.Spec.NodeName, PodIP: a}); bears(pod, a) {
			if _, err := o.pod(id, g); err == nil {
				return g, true
			}
		}
	}
	return records.Gateway{}, false
}
