package netops

import (
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/nft"
)

// A gateway translates by prefix, 1:1, each packet by itself: nothing is remembered of connections, so there is
// nothing to lose with a gateway, to fill up, or to look up. Both addresses are rewritten before the packet is routed,
// so that in between
//
//	from the cluster, for the peer: both addresses are as in the tunnel
//	from the peer, for the cluster: the source is what this cluster calls it, the destination what it calls itself
//
// and an ICMP error that the gateway makes of such a packet tells by its destination where it has to go.
//
// Fragments are put together before (nf_defrag_ipv4, priority -400, there as long as any rule asks for a connection):
// only the first one has the ports and the checksum, or an ICMP type.

// ingress is where packets begin: they are checked by the addresses on the wire. The overlay's own packets and the
// tunnel's come last: pods may use these ports, too.
//
// By the pod's own link comes what is for the pod's address, and nothing for the gateway's ends of overlay and tunnel,
// nor a fragment of what is inside these: that is decided before fragments are put together, for the kernel does not
// ask by which link each came (ip_frag_queue in net/ipv4/ip_fragment.c).
//
// The tunnel's packets are not tracked. A stranger who forges the peer's address would else, by one probe of sizes,
// make an entry by which all packets from there are translated to where probes go.
func (c GatewayConfig) ingress() []nft.Chain {
	probes := c.eachListenPort(func(port uint16) nft.Rule {
		return nft.Rule{nft.UDPDPort(port), nft.UDPBegins(echo.Magic), nft.Accept()}
	})
	tunnels := c.eachListenPort(func(port uint16) nft.Rule { return nft.Rule{nft.UDPDPort(port), nft.NoTrack()} })
	return []nft.Chain{
		{Name: "uplink", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityPieces}, Rules: []nft.Rule{
			{nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.DAddrNot(cidr.Single(c.Pod)), nft.IIfNot(loopback), nft.Counter(), nft.Drop()},
		}},
		{Name: "ingress", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: slices.Concat([]nft.Rule{
			{nft.IIfGroup(GroupOverlay), nft.Goto("from-overlay")},
			{nft.IIfGroup(GroupTunnel), nft.Goto("from-tunnel")},
			{nft.UDPDPort(c.Overlay.Port), nft.NoTrack()},
		}, probes, tunnels)},
	}
}

// fromCluster lets pods and nodes of this side send to the peer.
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

// fromPeer lets the peer send to pods, nodes and exposed hosts of this side.
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

// icmpQuoting are the ICMP messages that quote a packet: errors, and two that have no business between clusters.
var (
	icmpObsolete = []uint8{4, 5} // source quench (RFC 6633), redirect
	icmpQuoting  = slices.Concat(icmpObsolete, icmpErrors)
)

// quoted translates the header that an ICMP error quotes, which is of a packet that went the other way. Errors about
// packets that were not for this peer, or not from it, are dropped.
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

// output translates and steers the ICMP errors that the gateway itself makes: they are output lookups, to which rules
// by incoming interface do not apply, and would reach this cluster's pod of the same address. Each seems to come from
// where the packet was going, an address that its receiver knows and its filters expect.
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
	leaving = append(leaving, nft.Rule{nft.UDPSPort(EchoPort), nft.OIfGroupNot(GroupOverlay), nft.OIfGroupNot(GroupTunnel), nft.NoteDAddr(setMeasured)})
	return []nft.Chain{
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: leaving},
		{Name: "error-to-peer", Rules: []nft.Rule{
			{nft.Jump("quoted-to-peer")},
			{nft.SetSAddrQuoted(), nft.SetMark(markError), nft.Accept()},
		}},
		{Name: "error-to-cluster", Rules: []nft.Rule{
			{nft.Jump("quoted-to-cluster")},
			{nft.SetSAddrQuoted(), nft.Accept()}, // an address of the peer's: a rule knows the way
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

// refusal drops what no rule before it let pass.
var refusal = nft.Rule{nft.Counter(), nft.Drop()}

// translated is the rule of one range of the peer: a match, a translation where it is needed, and where to go.
func translated(m Mapping, match, translation, verdict nft.Expr) nft.Rule {
	if m.Identity() {
		return nft.Rule{match, verdict}
	}
	return nft.Rule{match, translation, verdict}
}
