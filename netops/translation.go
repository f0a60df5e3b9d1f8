package netops

import (
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/nft"
)

// A gateway translates addresses by prefix, 1:1 and per packet. It keeps no connection state, which could be lost with
// a gateway, overflow, or cost lookups. Both addresses are rewritten before the packet is routed. After that, a packet
// has these addresses:
//
//	from the cluster to the peer: both addresses are those in the tunnel
//	from the peer to the cluster: the source as this cluster reaches the peer, the destination this cluster's own
//
// An ICMP error that the gateway generates for such a packet therefore has a destination by which it can be routed.
//
// Fragments are reassembled before translation (nf_defrag_ipv4, priority -400, active while any rule uses connection
// tracking), because only the first one has the ports and the checksum, or an ICMP type.

// ingress returns the first chains, which match the addresses on the wire. The packets of overlay and tunnel come last,
// because pods may use the same ports.
//
// The pod's own link only receives packets for the pod's address. Packets for the gateway's overlay and tunnel
// addresses, and their fragments, are dropped. This is before fragments are reassembled, because the kernel does not
// compare the links of fragments (ip_frag_queue in net/ipv4/ip_fragment.c).
//
// The tunnel's packets are not tracked. Otherwise a probe with the peer's address as forged source would create a
// conntrack entry, by which all packets from that address are translated to the port for probes.
func (c GatewayConfig) ingress() []nft.Chain {
	probes := c.eachListenPort(func(port uint16) nft.Rule {
		return nft.Rule{nft.UDPDPort(port), nft.UDPBegins(echo.Magic), nft.Accept()}
	})
	tunnels := c.eachListenPort(func(port uint16) nft.Rule { return nft.Rule{nft.UDPDPort(port), nft.NoTrack()} })
	return []nft.Chain{
		{Name: "uplink", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityPieces}, Rules: append([]nft.Rule{
			{nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.DAddrNot(cidr.Single(c.Pod)), nft.IIfNot(Loopback), nft.Counter(), nft.Drop()},
		}, c.plainSources()...)},
		{Name: "ingress", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: slices.Concat([]nft.Rule{
			{nft.IIfGroup(GroupOverlay), nft.Goto("from-overlay")},
			{nft.IIfGroup(GroupTunnel), nft.Goto("from-tunnel")},
			{nft.UDPDPort(c.Overlay.Port), nft.NoTrack()},
		}, probes, tunnels)},
	}
}

// fromCluster accepts packets from pods and nodes of this cluster to the peer.
func (c GatewayConfig) fromCluster() []nft.Chain {
	internal, external := cidr.Lower(c.InternalCIDR), cidr.Lower(c.ExternalCIDR)
	var arriving []nft.Rule
	for _, m := range c.Peer {
		arriving = append(arriving, translated(m, nft.DAddr(m.Seen), nft.SetDAddrPrefix(m.Real), nft.Goto("to-peer")))
	}
	arriving = append(arriving, nft.Rule{nft.DAddr(cidr.Single(c.Internal)), nft.Mark(markForSelf), nft.SAddr(internal), nft.SetMark(markLocal), nft.Accept()})
	leaving := []nft.Rule{{nft.ICMPType(icmpQuoting...), nft.Jump("quoted-to-peer")}}
	for _, p := range cidr.Outermost(c.Pods) {
		leaving = append(leaving, nft.Rule{nft.SAddr(p), nft.NoTrack(), nft.Accept()})
	}
	leaving = append(leaving, nft.Rule{nft.SAddr(internal), nft.SetSAddrPrefix(external), nft.NoTrack(), nft.Accept()})
	return []nft.Chain{
		{Name: "from-overlay", Rules: append(arriving, refusal)},
		{Name: "to-peer", Rules: append(leaving, refusal)},
	}
}

// fromPeer accepts packets from the peer to pods, nodes and exposed hosts of this cluster.
func (c GatewayConfig) fromPeer() []nft.Chain {
	internal, external := cidr.Lower(c.InternalCIDR), cidr.Lower(c.ExternalCIDR)
	arriving := c.exposure().fromTunnel
	for _, m := range c.Peer {
		arriving = append(arriving, translated(m, nft.SAddr(m.Real), nft.SetSAddrPrefix(m.Seen), nft.Goto("to-cluster")))
	}
	for _, t := range c.Tunnels {
		own, far := nft.DAddr(cidr.Single(t.Address.Addr())), nft.SAddr(cidr.Single(t.Peer))
		arriving = append(arriving, nft.Rule{own, far, nft.IIf(t.Link), nft.SetMark(markLocal), nft.Accept()})
	}
	leaving := []nft.Rule{{nft.ICMPType(icmpQuoting...), nft.Jump("quoted-to-cluster")}}
	for _, p := range cidr.Outermost(c.Pods) {
		leaving = append(leaving, nft.Rule{nft.DAddr(p), nft.NoTrack(), nft.Accept()})
	}
	leaving = append(leaving, nft.Rule{nft.DAddr(external), nft.SetDAddrPrefix(internal), nft.NoTrack(), nft.Accept()})
	return []nft.Chain{
		{Name: "from-tunnel", Rules: append(arriving, refusal)},
		{Name: "to-cluster", Rules: append(leaving, refusal)},
	}
}

// icmpQuoting are the ICMP messages that quote a packet: errors, and two obsolete types that are dropped between
// clusters.
var (
	icmpObsolete = []uint8{4, 5} // source quench (RFC 6633), redirect
	icmpQuoting  = slices.Concat(icmpObsolete, icmpErrors)
)

// quoted translates the header that an ICMP error quotes, of a packet in the opposite direction. Errors for packets
// that were not sent to or from this peer are dropped.
func (c GatewayConfig) quoted() []nft.Chain {
	internal, external := cidr.Lower(c.InternalCIDR), cidr.Lower(c.ExternalCIDR)
	obsolete := nft.Rule{nft.ICMPType(icmpObsolete...), nft.Counter(), nft.Drop()}
	toPeer := []nft.Rule{obsolete, {nft.QuotedDAddr(internal), nft.SetQuotedDAddrPrefix(external)}}
	toCluster := []nft.Rule{obsolete, {nft.QuotedSAddr(external), nft.SetQuotedSAddrPrefix(internal)}}
	for _, m := range c.Peer {
		toPeer = append(toPeer, translated(m, nft.QuotedSAddr(m.Seen), nft.SetQuotedSAddrPrefix(m.Real), nft.Return()))
		toCluster = append(toCluster, translated(m, nft.QuotedDAddr(m.Real), nft.SetQuotedDAddrPrefix(m.Seen), nft.Return()))
	}
	return []nft.Chain{
		{Name: "quoted-to-peer", Rules: append(toPeer, refusal)},
		{Name: "quoted-to-cluster", Rules: append(toCluster, refusal)},
	}
}

// output translates and routes the ICMP errors that the gateway itself generates. Rules by incoming interface do not
// apply to output lookups, so that the errors would reach this cluster's pod with the same address. Their source is the
// destination of the quoted packet, an address that the receiver and its filters know.
func (c GatewayConfig) output() []nft.Chain {
	internal, external := cidr.Lower(c.InternalCIDR), cidr.Lower(c.ExternalCIDR)
	errors := c.exposure().errors
	for _, m := range c.Peer {
		errors = append(errors, translated(m, nft.DAddr(m.Seen), nft.SetDAddrPrefix(m.Real), nft.Goto("error-to-peer")))
	}
	errors = append(errors, nft.Rule{nft.DAddr(external), nft.SetDAddrPrefix(internal), nft.Goto("error-to-cluster")})
	for _, p := range cidr.Outermost(c.Pods) {
		errors = append(errors, nft.Rule{nft.DAddr(p), nft.Goto("error-to-cluster")})
	}
	leaving := []nft.Rule{{nft.UDPDPort(c.Overlay.Port), nft.NoTrack()}}
	for _, t := range c.Tunnels {
		leaving = append(leaving, nft.Rule{nft.DAddr(t.Address.Masked()), nft.OIfGroupNot(GroupTunnel), nft.Counter(), nft.Drop()})
	}
	leaving = append(leaving, c.eachListenPort(func(port uint16) nft.Rule { return nft.Rule{nft.UDPSPort(port), nft.NoTrack(), nft.Goto("sent")} })...)
	leaving = append(leaving, nft.Rule{nft.UDPSPort(EchoPort), nft.OIfGroupNot(GroupOverlay), nft.OIfGroupNot(GroupTunnel), nft.UpdateDAddr(setMeasured)})
	return []nft.Chain{
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: leaving},
		{Name: "error-to-peer", Rules: []nft.Rule{
			{nft.Jump("quoted-to-peer")},
			{nft.SetSAddrQuoted(), nft.SetMark(markError), nft.Accept()},
		}},
		{Name: "error-to-cluster", Rules: []nft.Rule{
			{nft.Jump("quoted-to-cluster")},
			{nft.SetSAddrQuoted(), nft.Accept()}, // an address of the peer: a rule matches it
		}},
		{Name: "errors", Rules: append(errors, refusal)},
		{Name: "output", Hook: &nft.Hook{Type: "route", Point: "output", Priority: priorityConnections}, Rules: []nft.Rule{
			{nft.ICMPType(icmpErrors...), nft.Jump("errors")},
		}},
	}
}

// icmpErrors are destination unreachable, time exceeded and parameter problem (RFC 792).
var icmpErrors = []uint8{3, 11, 12}

const icmpRequest = 8 // echo request

// refusal drops the packets that no preceding rule accepted.
var refusal = nft.Rule{nft.Counter(), nft.Drop()}

// translated returns the rule for one range of the peer: a match, a translation if the range is remapped, and a
// verdict.
func translated(m Mapping, match, translation, verdict nft.Expr) nft.Rule {
	if m.Identity() {
		return nft.Rule{match, verdict}
	}
	return nft.Rule{match, translation, verdict}
}
