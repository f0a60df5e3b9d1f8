package trace

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
	"liqonet.io/liqonet/netops"
)

// compute traces packets and answers through the desired states of the kernels. Helpers verify that the kernels have
// these states.
func compute(local, remote *side, r Result) (Result, error) {
	sent := &walk{flow: r.Flow, first: true}
	sent.cross(local, remote, r.From, r.To)
	if r.There = sent.way; r.There.Dropped() != "" {
		return r, nil
	}
	back := &walk{flow: r.Flow}
	back.cross(remote, local, r.To, r.From)
	r.Back = back.way
	r.Crosses = r.Back.Dropped() == ""
	return r, nil
}

// walk is a packet on its path. Its steps report whether it continues.
type walk struct {
	flow  Flow
	first bool // it begins a connection; otherwise it is an answer
	way   Way
	at    Addresses // current addresses
}

// cross traces a packet from one end to the other.
func (w *walk) cross(s, peer *side, from, to End) {
	w.at = Addresses{from.Address, cmp.Or(to.Seen, to.Address)}
	own := 1
	// For an exposed host, the gateway that has the connection sends the answers.
	if from.Kind != translate.Exposed {
		if own = w.depart(s, from, to); own == 0 {
			return
		}
	}
	far := w.send(s, peer, own, from)
	if far == 0 {
		return
	}
	if node := w.receive(peer, far, own, to); node != nil {
		w.arrive(peer, far, *node, to)
	}
}

// add appends a hop.
func (w *walk) add(s *side, kind Kind, name, node string) *Hop {
	w.way = append(w.way, Hop{Cluster: s.Fabric.Name, Kind: kind, Name: name, Node: node, Packet: w.at})
	return &w.way[len(w.way)-1]
}

// drop marks the hop as the end of the path.
func (h *Hop) drop(format string, args ...any) int {
	h.Dropped = fmt.Sprintf(format, args...)
	return 0
}

// lookUp routes the packet by the desired state of a kernel. It returns false if the packet is dropped because the
// object missing is absent.
func (w *walk) lookUp(h *Hop, s netops.State, iif, missing string) (netops.Route, bool) {
	rule, route, ok := s.Lookup(netops.Packet{From: w.at.Source, To: w.at.Destination, IIf: iif})
	if !ok {
		h.drop("no route of liqonet leads to %s", w.at.Destination)
		return route, false
	}
	h.Rule, h.Route, h.MTU = rule.String(), route.String(), route.MTU
	if route.Type != netops.Unicast {
		h.drop("%s", missing)
		return route, false
	}
	return route, true
}

// unforwarded returns why a node does not forward packets of an end on it; "": it does.
func unforwarded(n records.Node, e End) string {
	if n.NotForwarding && e.Kind == translate.Pod {
		return "the node forwards no packets of pods: net.ipv4.ip_forward is 0"
	}
	return ""
}

// policy returns why a NetworkPolicy of an end blocks the first packet of a connection; "": none does.
func (w *walk) policy(e End, d networkingv1.PolicyType, other netip.Addr) string {
	if !w.first {
		return ""
	}
	return e.pod.blocks(d, other, w.flow)
}

// depart adds the sender's node. It returns the number of the gateway that the packet takes.
func (w *walk) depart(s *side, from, to End) int {
	h := w.add(s, Node, from.Node, from.Node)
	n := s.node(named(from.Node))
	switch {
	case from.Unreachable != "":
		return h.drop("%s", from.Unreachable)
	case n == nil:
		return h.drop("no helper of node %q reports", from.Node)
	case !to.Seen.IsValid():
		return h.drop("%s", to.Unreachable)
	case n.Refused[s.peering.Name] != "":
		return h.drop("the node refuses the peering: %s", n.Refused[s.peering.Name])
	case !slices.Contains(n.Peerings, s.peering.Name):
		return h.drop("the node does not serve the peering yet")
	}
	h.drift(n.Drift)
	if why := cmp.Or(unforwarded(*n, from), w.policy(from, egress, w.at.Destination)); why != "" {
		return h.drop("%s", why)
	}
	ids, unused, known := s.peering.GatewayIDs(), map[records.GatewayID]bool{}, 0
	for _, id := range ids {
		why := s.unused(id, n.Name)
		unused[id] = why != ""
		h.Members = append(h.Members, Member{Name: cmp.Or(s.Gateways[id].Pod, id.String()), Used: why == "", Why: why})
		if known == 0 && why == "" {
			known = id.Number
		}
	}
	state := s.kernelOf(*n, unused)
	route, ok := w.lookUp(h, state, "lo", "the pod of no gateway is known")
	if !ok {
		return 0
	}
	if known == 0 {
		return h.drop("no gateway of %s is usable", s.Fabric.Name)
	}
	id := ids[known-1]
	h.out(state, route, netops.NexthopID(s.Fabric.InternalCIDR(), s.peering.GatewayAddress(s.Fabric.InternalCIDR(), known)))
	h.Outer = &Addresses{n.OverlaySources[id], s.Gateways[id].PodIP}
	if why := h.segment(s, id, n.Name); why != "" {
		return h.drop("the node is not verified: %s", why)
	}
	h.others(s, ids[known:], unused, n.Name)
	return known
}

// others notes the gateways among ids that the node uses but that do not carry its packets.
func (h *Hop) others(s *side, ids []records.GatewayID, unused map[records.GatewayID]bool, node string) {
	for _, id := range ids {
		if unused[id] {
			continue
		}
		if fault := health.NodeFault(s.reports[id], node); fault != "" {
			h.Notes = append(h.Notes, fmt.Sprintf("other flows take %s, by which the node is not verified: %s", cmp.Or(s.Gateways[id].Pod, id.String()), fault))
		}
	}
}

// kernelOf returns the desired state of a node's kernel.
func (s *side) kernelOf(n records.Node, unused map[records.GatewayID]bool) netops.State {
	served := slices.DeleteFunc(slices.Clone(s.Peerings), func(p records.Peering) bool { return !slices.Contains(n.Peerings, p.Name) })
	return datapath.Node{
		Name: n.Name, Fabric: s.Fabric, Peerings: served, Gateways: s.Gateways, Unused: unused, Pods: datapath.PodsOf(n), Internal: s.internal(n),
	}.State()
}

// out describes the link that a member of a route's nexthop group leads to.
func (h *Hop) out(s netops.State, route netops.Route, member uint32) {
	if i := slices.IndexFunc(s.Groups, func(g netops.NexthopGroup) bool { return g.ID == route.Nexthop }); i >= 0 {
		h.Route += " (" + s.Groups[i].String() + ")"
	}
	i := slices.IndexFunc(s.Nexthops, func(n netops.Nexthop) bool { return n.ID == member })
	if i < 0 {
		return
	}
	j := slices.IndexFunc(s.Links, func(l netops.Link) bool { return l.Name == s.Nexthops[i].Link })
	l := s.Links[j]
	h.Out = fmt.Sprintf("%s (%s)", l.Name, s.Nexthops[i])
	if l.Kind != netops.KindDevice {
		h.Out += fmt.Sprintf(", %s to UDP port %d, network %d", l.Kind, l.Port, max(l.VNI, s.Nexthops[i].VNI))
	}
}

// segment adds the measurements between a node and a gateway, and returns the reason for which their packets do not
// cross; "" if they do.
func (h *Hop) segment(s *side, id records.GatewayID, node string) string {
	report := s.reports[id]
	if report == nil {
		return "the gateway has not reported"
	}
	measured := health.Node(report, node)
	h.PathMTU = measured.Path.MTU
	if size := health.NarrowNode(measured, s.peering.MTU); measured.Path.MTU > 0 && size > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("path MTU %d is too small for packets of %d bytes in the overlay", size, s.peering.MTU))
	}
	fault := health.NodeFault(report, node)
	h.State = cmp.Or(fault, "verified")
	return fault
}

// drift adds a note on external changes that a helper restored.
func (h *Hop) drift(d records.Drift) {
	if d.Times > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("the helper restored the kernel %d times, last at %s: %s", d.Times, d.Last.UTC().Format("2006-01-02 15:04:05"), d.What))
	}
}

// gatewayHop appends the hop of a gateway.
func (w *walk) gatewayHop(s *side, number int) (*Hop, records.GatewayID) {
	id := records.GatewayID{Peering: s.peering.Name, Number: number}
	g := s.Gateways[id]
	h := w.add(s, Gateway, cmp.Or(g.Pod, id.String()), g.Node)
	if report := s.reports[id]; report != nil {
		h.drift(report.Drift)
	}
	return h, id
}

// translate changes the addresses of the packet.
func (w *walk) translate(h *Hop, to Addresses) {
	if to != w.at {
		h.Translated, w.at = &to, to
	}
}

// send adds the gateway of the sender's cluster. It returns the number of the peer's gateway.
func (w *walk) send(s, peer *side, number int, from End) int {
	h, id := w.gatewayHop(s, number)
	// In the tunnel, both ends have the addresses of their own clusters; those of nodes are external.
	source, err := peer.translator.ImportedFrom(from.Seen)
	destination, err2 := s.translator.ImportedFrom(w.at.Destination)
	if err = cmp.Or(err, err2); err != nil {
		return h.drop("%v", err)
	}
	w.translate(h, Addresses{source.Translated, destination.Translated})
	tunnels, used, unused := s.gateway(number).Tunnels, 0, map[int]bool{}
	tunnels = tunnels[:min(len(tunnels), len(s.peering.Gateways[number-1].Tunnels))] // a report can have more
	for i, t := range tunnels {
		why := t.Unused
		if t.State == health.Down || t.State == health.Unknown {
			why = cmp.Or(why, fmt.Sprintf("%s: %s", t.State, t.Reason))
		}
		unused[i+1] = why != ""
		h.Members = append(h.Members, Member{Name: fmt.Sprintf("%s to gateway %d of %s", netops.TunnelLink(i+1), i+1, peer.Fabric.Name), Used: why == "", Why: why})
		if used == 0 && why == "" {
			used = i + 1
		}
	}
	state := s.gatewayOf(id, unused).State()
	route, ok := w.lookUp(h, state, netops.Overlay, fmt.Sprintf("the gateway has no route to %s", w.at.Destination))
	switch {
	case !ok:
		return 0
	case used == 0:
		return h.drop("no tunnel is usable")
	case used > len(peer.peering.Gateways):
		return h.drop("the record of %s has no gateway %d", peer.Fabric.Name, used)
	}
	if from.Kind == translate.Exposed {
		h.Rule = "the connection's mark"
	}
	t := tunnels[used-1]
	for _, n := range state.Nexthops {
		if n.Link == netops.TunnelLink(used) {
			h.out(state, route, n.ID)
		}
	}
	h.Endpoint, h.PathMTU = t.Endpoint, t.PathMTU
	h.State = strings.TrimSuffix(fmt.Sprintf("%s: %s", t.State, t.Reason), ": ")
	if t.PathMTU > 0 && t.PathMTU < s.peering.MTU+health.TunnelOverhead-20 { // 20 = IPv6 40 - IPv4 20
		h.Notes = append(h.Notes, fmt.Sprintf("path MTU %d is too small for packets of %d bytes in the tunnel", t.PathMTU, s.peering.MTU))
	}
	return used
}

func (s *side) gatewayOf(id records.GatewayID, unused map[int]bool) datapath.Gateway {
	return datapath.Gateway{
		Fabric: *s.Fabric, Peering: s.peering, Number: id.Number, Nodes: s.Nodes, Pod: s.Gateways[id].PodIP, Unused: unused,
	}
}

// receive adds the gateway of the receiver's cluster, which gets the packet through a tunnel from one of the peer's
// gateways. It returns the receiver's node; nil if there is none.
func (w *walk) receive(s *side, number, from int, to End) *records.Node {
	h, id := w.gatewayHop(s, number)
	source, err := s.translator.Import(w.at.Source)
	if err != nil {
		h.drop("%v", err)
		return nil
	}
	w.translate(h, Addresses{source.Translated, to.Address})
	gateway := s.gatewayOf(id, nil)
	if to.Kind == translate.Exposed {
		if !slices.ContainsFunc(gateway.Exposed(), func(e records.Exposed) bool { return e.Host == to.Address }) {
			h.drop("no host of %s is exposed by this address", s.Fabric.Name)
			return nil
		}
		h.Out = fmt.Sprintf("eth0, to the host, which sees the gateway's address %s", s.Gateways[id].PodIP)
		return nil
	}
	state := gateway.State()
	route, ok := w.lookUp(h, state, netops.TunnelLink(from), fmt.Sprintf("no node of %s reports a pod with address %s", s.Fabric.Name, w.at.Destination))
	if !ok {
		return nil
	}
	n := s.node(func(n records.Node) bool {
		return netops.NexthopID(s.Fabric.InternalCIDR(), s.internal(n)) == route.Nexthop
	})
	h.out(state, route, route.Nexthop)
	h.Outer = &Addresses{s.Gateways[id].PodIP, n.OverlaySources[id]}
	if why := h.segment(s, id, n.Name); why != "" {
		h.drop("node %s is not verified: %s", n.Name, why)
		return nil
	}
	return n
}

// arrive adds the receiver's node.
func (w *walk) arrive(s *side, number int, n records.Node, to End) {
	h := w.add(s, Node, n.Name, n.Name)
	h.drift(n.Drift)
	switch {
	case to.Unreachable != "":
		h.drop("%s", to.Unreachable)
	case slices.ContainsFunc(slices.Collect(maps.Values(s.Gateways)), func(g records.Gateway) bool { return g.PodIP == w.at.Destination }):
		h.drop("%s is the pod of a gateway, which peers do not reach", w.at.Destination)
	case w.first && to.Kind == translate.Node && w.flow.Protocol != ICMP:
		h.drop("of nodes, peers reach ping and answers only")
	default:
		if why := cmp.Or(unforwarded(n, to), w.policy(to, ingress, w.at.Source)); why != "" {
			h.drop("%s", why)
		}
	}
	h.Out = fmt.Sprintf("to the %s, from %s", to.Kind, netops.NodeLink(s.peering.OverlayID(number)))
}
