//go:build linux

package node

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// rebuild stores a peering, and where its gateways are, as an earlier process left them in the kernel: it goes on,
// whatever this process can read of its records. The kernel has the part of them that node helpers use, except for the
// gateway mode and the peer's nodes that answer probes.
func (m *lastValid) rebuild(o objects, name string) {
	found := netops.PeerFrom(*o.found, m.fabric.InternalCIDR(), m.reserved.ranges[name])
	routed := netops.Only(m.reserved.external[name], func(p netip.Prefix) bool { return slices.Contains(found.CIDRs, p) })
	if len(routed) == 0 {
		return
	}
	number, external := records.NumberOf(m.fabric.InternalCIDR(), found.Gateways[0].Internal), routed[0]
	if m.reserved.gateways[name] != records.GatewayAddresses(m.fabric.InternalCIDR(), number) {
		return // the ranges have been exchanged, and the path is that of another peering
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
		if at, ok := o.gatewayAt(id, found.Gateways[i].Pod); ok && m.gateways[id].gateway.Pod == "" {
			if len(endpoints) > 0 {
				at.Endpoint, at.OtherEndpoints = endpoints[0], endpoints[1:]
			}
			m.gateways[id] = located{gateway: at}
		}
	}
	if _, known := m.peerings[name]; !known {
		m.peerings[name] = p
	}
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
