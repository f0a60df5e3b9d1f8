//go:build linux

package node

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
)

// rebuild stores the peerings, and where their gateways are, as an earlier process left them in the kernel: they go on,
// whatever this process can read of their records. The kernel has the part of them that node helpers use, except for
// the gateway mode and the peer's nodes that answer probes.
//
// A path is that of the readable record with its ranges and its number, if no gateway's pod on the path is another
// peering's: the reservations may be exchanged, and a record may have what is not its own. If the number is reserved
// for a peering whose record cannot be read, the record needs a pod of its own there. All other paths are those of the
// peerings for which their ranges are reserved.
func (m *lastValid) rebuild(o objects, read map[string]serving.Record) {
	owners := map[int]string{}
	unreadable := func(peering string) bool { return read[peering].Err != nil }
	for name, r := range read {
		if r.Err != nil {
			continue
		}
		number, external := r.Peering.Number, []netip.Prefix{r.Peering.Peer.ExternalCIDR().Seen}
		own := func(peering string) bool { return peering == name }
		others := func(peering string) bool { return peering != name }
		if m.rebuildFrom(o, name, r.Peering.Seen(), external, func(found int, path netops.NodePeer) bool {
			return found == number && !o.leadsTo(path, others) &&
				(m.reservedFor(found, own) || o.leadsTo(path, own) || !m.reservedFor(found, unreadable))
		}) {
			owners[number] = name
		}
	}
	for name := range read {
		others := func(peering string) bool { return peering != name }
		m.rebuildFrom(o, name, m.reserved.ranges[name], m.reserved.external[name], func(found int, _ netops.NodePeer) bool {
			owner, is := owners[found]
			return (!is || owner == name) && !m.reservedFor(found, others) // else the reservations are exchanged
		})
	}
}

// leadsTo reports whether a path leads to the pod of a gateway of such a peering.
func (o objects) leadsTo(path netops.NodePeer, such func(peering string) bool) bool {
	return slices.ContainsFunc(o.gateways, func(pod *corev1.Pod) bool {
		leads := func(g netops.NodeGateway) bool { return g.Pod.IsValid() && bears(pod, g.Pod) }
		return !ended(pod) && such(pod.Labels[records.LabelPeering]) && slices.ContainsFunc(path.Gateways, leads)
	})
}

// reservedFor reports whether a number is reserved for a peering that matches.
func (m *lastValid) reservedFor(number int, such func(peering string) bool) bool {
	block := records.GatewayAddresses(m.fabric.InternalCIDR(), number)
	for peering, reserved := range m.reserved.gateways {
		if reserved == block && such(peering) {
			return true
		}
	}
	return false
}

// rebuildFrom stores the peering to whose ranges the kernel has a path, and reports whether there is one that is
// accepted. One of externals is its external CIDR.
func (m *lastValid) rebuildFrom(o objects, name string, ranges, externals []netip.Prefix, accepts func(number int, path netops.NodePeer) bool) bool {
	found := netops.PeerFrom(*o.found, m.fabric.InternalCIDR(), ranges)
	routed := netops.Only(externals, func(p netip.Prefix) bool { return slices.Contains(found.CIDRs, p) })
	if len(routed) == 0 {
		return false
	}
	number, external := records.NumberOf(m.fabric.InternalCIDR(), found.Gateways[0].Internal), routed[0]
	if !accepts(number, found) {
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
