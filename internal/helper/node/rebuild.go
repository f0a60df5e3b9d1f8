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
func (m *lastValid) rebuild(o objects, name string, read map[string]serving.Record) {
	found := netops.PeerFrom(*o.found, m.fabric.InternalCIDR(), m.reserved.ranges[name])
	routed := netops.Only(m.reserved.external[name], func(p netip.Prefix) bool { return slices.Contains(found.CIDRs, p) })
	if len(routed) == 0 || ofAnother(found, name, read) {
		return
	}
	external := routed[0]
	p := records.Peering{Name: name, MTU: found.MTU, Peer: records.Peer{ExternalCIDRs: []records.Mapping{{Seen: external}}}}
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
	all := make([]records.LocalGateway, records.MaxGateways)
	for i, g := range found.Gateways {
		id, at := o.gatewayAt(name, g.Pod)
		if _, known := m.gateways[id]; id.Number > 0 && !known {
			if len(endpoints) > 0 {
				at.Endpoint, at.OtherEndpoints = endpoints[0], endpoints[1:]
			}
			m.gateways[id] = located{gateway: at}
		}
		if i == 0 {
			id.Number = 1 // also if its pod was replaced
		}
		if id.Number == 0 || all[id.Number-1].OverlayID != 0 { // another gateway's pod has the address now
			continue
		}
		all[id.Number-1] = records.LocalGateway{OverlayID: g.VNI, Address: g.Internal, Tunnels: tunnels}
		p.Gateways = all[:max(len(p.Gateways), id.Number)]
	}
	if _, known := m.peerings[name]; !known {
		m.peerings[name] = p
	}
}

// ofAnother reports whether a readable record of another peering has a gateway that was found: then the reservations
// are exchanged, and the path is that of the other peering.
func ofAnother(found netops.NodePeer, name string, read map[string]serving.Record) bool {
	for other, r := range read {
		if other != name && r.Err == nil && slices.ContainsFunc(r.Peering.Gateways, func(own records.LocalGateway) bool {
			return slices.ContainsFunc(found.Gateways, func(g netops.NodeGateway) bool { return g.VNI == own.OverlayID || g.Internal == own.Address })
		}) {
			return true
		}
	}
	return false
}

// gatewayAt returns which gateway of a peering has a pod with an address, and where it is; number 0: none.
func (o objects) gatewayAt(peering string, a netip.Addr) (records.GatewayID, records.Gateway) {
	for _, pod := range o.gateways {
		if !bears(pod, a) {
			continue
		}
		g := records.Gateway{Pod: pod.Name, Node: pod.Spec.NodeName, PodIP: a}
		for _, id := range records.GatewayIDs(peering, records.MaxGateways) {
			if _, err := o.pod(id, g); err == nil {
				return id, g
			}
		}
	}
	return records.GatewayID{Peering: peering}, records.Gateway{}
}
