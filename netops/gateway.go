package netops

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/nft"
)

// HealthPort is the TCP port of a helper's probes and metrics.
const HealthPort = 6093

// Rule priorities in a gateway's namespace, all before the local table, so that a remote pod with the gateway
// pod's own address stays reachable.
const (
	priorityMarkLocal = 50
	priorityErrors    = 51
	priorityExposed   = 52
	priorityToPeer    = 53
	priorityFromPeer  = 54
	priorityLocal     = 100
)

// Packet marks in a gateway's namespace; they never leave it.
const (
	markLocal    = 0x4c00 // for the gateway itself
	markToPeer   = 0x4c01 // an ICMP error of the gateway's own, for the peer
	markFromPeer = 0x4c02 // the same, for this cluster
	markExposed  = 0x4c03 // between the peer and an exposed host
)

// Connection marks: where a flow's first packet came from.
const (
	fromTunnel  = 1
	fromOverlay = 2
	toHost      = 3 // the tunnel, for an exposed host
)

// Echoes that a gateway takes in a second, and at once: of all its nodes, which send one each, and of its peer, which
// sends five and answers as many.
const (
	EchoesOfNodes = 5000
	echoesOfPeer  = 100
)

// Requests in a second, and at once, by which paths outside overlay and tunnel are measured: of nodes, which send
// a few each half minute, and of all others. Who of these is answered is the helper's matter.
const (
	sizesOfNodes  = 1000
	sizesOfOthers = 200
)

// Priorities of a gateway's chains.
const (
	priorityIngress = -150 // after conntrack (-200), before DNAT (-100)
	priorityDNAT    = -100
	prioritySNAT    = 100
	priorityErrata  = 110
)

// Mapping is a range of the peer: its real addresses and those by which this cluster reaches them.
type Mapping struct{ Real, Seen netip.Prefix }

// GatewayConfig is what the gateway of one peering must know.
type GatewayConfig struct {
	Overlay      OverlayConfig
	Pod          netip.Addr     // address of this gateway's pod; needed where hosts are exposed
	Internal     netip.Addr     // this gateway's end of the overlay
	InternalCIDR netip.Prefix   // of this cluster; its first half belongs to nodes
	ExternalCIDR netip.Prefix   // of this cluster; its first half maps 1:1 to the nodes'
	Pods         []netip.Prefix // pod CIDRs of this cluster
	Peer         []Mapping      // the peer's pod and external CIDRs
	Exposed      []Exposed      // hosts outside the cluster that the peer may reach
	Nodes        []GatewayNode  // of those that have the same range, the first one gets its packets
	VNI          uint32
	Tunnel       netip.Prefix // this end's address
	TunnelPeer   netip.Addr
	ListenPort   uint16 // UDP port at which the peer begins a handshake; 0: it never does
	MTU          int    // bytes, of the largest packet that travels the whole path
	ClampMSS     bool
}

// GatewayNode is a node of this cluster as a gateway sees it.
type GatewayNode struct {
	Internal netip.Addr     // the node's end of the overlay
	Source   netip.Addr     // from where its overlay packets come, and where they are sent
	Pods     []netip.Prefix // ranges and single addresses of its pods
}

// GatewayState returns the state of the namespace of a gateway's pod.
func GatewayState(c GatewayConfig) State {
	s := State{
		Links: []Link{
			c.Overlay.link(c.Internal),
			{Name: Tunnel, Kind: KindDevice, Group: GroupTunnel, Forwarding: true, MarkedPath: len(c.Exposed) > 0},
		},
		Addresses: []Address{
			{Link: Overlay, Prefix: host(c.Internal)},
			{Link: Tunnel, Prefix: c.Tunnel},
		},
		Routes: []Route{
			guardRoute(ToPeer, everything),
			guardRoute(FromPeer, everything),
		},
		Rules: []Rule{
			{Priority: priorityMarkLocal, Mark: markLocal, Table: localTable},
			{Priority: priorityErrors, Mark: markToPeer, Table: ToPeer},
			{Priority: priorityErrors, Mark: markFromPeer, Table: FromPeer},
			{Priority: priorityToPeer, IIf: Overlay, Table: ToPeer},
			{Priority: priorityFromPeer, IIf: Tunnel, Table: FromPeer},
			{Priority: priorityLocal, Table: localTable},
		},
		LocalRuleMoved: true,
		Firewall:       c.firewall(),
	}
	exposed := c.exposure()
	s.Links, s.Rules = append(s.Links, exposed.links...), append(s.Rules, exposed.rules...)
	for _, m := range c.Peer {
		s.Routes = append(s.Routes, Route{Table: ToPeer, Dst: m.Real, Type: Unicast, Link: Tunnel, MTU: c.MTU})
	}
	taken := map[netip.Prefix]bool{}
	for _, n := range c.Nodes {
		id := NexthopID(c.InternalCIDR, n.Internal)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: Overlay, IP: n.Internal, MAC: overlayMAC(n.Internal)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: id, Link: Overlay, Via: n.Internal, VNI: c.VNI, Dst: n.Source})
		s.Routes = append(s.Routes, Route{Table: mainTable, Dst: host(n.Internal), Type: Unicast, Nexthop: id})
		for _, p := range append([]netip.Prefix{host(n.Internal)}, n.Pods...) {
			if taken[p] {
				continue // a pod that moves is reported by both nodes for a moment, and by one that died for longer
			}
			taken[p] = true
			s.Routes = append(s.Routes, Route{Table: FromPeer, Dst: p, Type: Unicast, Nexthop: id, MTU: c.MTU})
		}
	}
	return s
}

var everything = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// lowerHalf is the half of an internal or external CIDR that belongs to nodes.
func lowerHalf(p netip.Prefix) netip.Prefix { return netip.PrefixFrom(p.Masked().Addr(), p.Bits()+1) }

// Names of the sets of a gateway's table.
const (
	setNodes     = "nodes"     // where overlay packets come from
	setLocal     = "local"     // inner sources on this side: pods and nodes
	setSeen      = "seen"      // the peer, as this side calls it
	setReal      = "real"      // the peer, as it calls itself
	setReachable = "reachable" // what the peer may send to
)

func (c GatewayConfig) firewall() nft.Table {
	var sources, seen, real []netip.Prefix
	for _, n := range c.Nodes {
		sources = append(sources, host(n.Source))
	}
	for _, m := range c.Peer {
		seen, real = append(seen, m.Seen), append(real, m.Real)
	}
	return nft.Table{
		Name: Table,
		Sets: append([]nft.Set{
			{Name: setNodes, Elements: ranges(sources)},
			{Name: setLocal, Elements: ranges(append(slices.Clone(c.Pods), lowerHalf(c.InternalCIDR)))},
			{Name: setSeen, Elements: ranges(seen)},
			{Name: setReal, Elements: ranges(real)},
			{Name: setReachable, Elements: ranges(append(slices.Clone(c.Pods), lowerHalf(c.ExternalCIDR)))},
		}, c.exposure().sets...),
		Chains: slices.Concat(c.filters(), c.translation(), c.ownErrors()),
	}
}

// filters lets through what the peering allows: checked by the addresses on the wire, before translation. What
// carries most of the packets is asked first: a packet's rules are a good part of what this side of the tunnel costs.
func (c GatewayConfig) filters() []nft.Chain {
	self, overlay, exposed := host(c.Internal), nft.UDPDPort(c.Overlay.Port), c.exposure()
	known := nft.CTState(nft.Established, nft.Related) // a flow that has its mark
	forward := []nft.Rule{
		{nft.IIf(Overlay), nft.OIf(Tunnel), nft.Accept()},
		{nft.IIf(Tunnel), nft.OIf(Overlay), nft.Accept()},
	}
	forward = append(forward, exposed.forward...)
	if c.ClampMSS {
		// 40 = IPv4 20 + TCP 20
		forward = append([]nft.Rule{{nft.TCPSyn(), nft.ClampMSS(uint16(c.MTU - 40))}}, forward...)
	}
	return []nft.Chain{
		{Name: "overlay-in", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: []nft.Rule{
			{nft.IIfNot(Overlay), nft.IIfNot(Tunnel), overlay, nft.NoTrack()}, // pods may use that port, too
		}},
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: []nft.Rule{
			{overlay, nft.NoTrack()},
			{nft.DAddr(c.Tunnel.Masked()), nft.OIfNot(Tunnel), nft.Counter(), nft.Drop()},
		}},
		{Name: "from-overlay", Rules: []nft.Rule{
			{nft.DAddr(self), nft.SAddr(lowerHalf(c.InternalCIDR)), nft.SetMark(markLocal), nft.Accept()},
			{known, nft.SAddrIn(setLocal), nft.DAddrIn(setSeen), nft.Accept()},
			{nft.SAddrIn(setLocal), nft.DAddrIn(setSeen), nft.SetCTMark(fromOverlay), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		{Name: "from-tunnel", Rules: slices.Concat([]nft.Rule{
			{nft.DAddr(host(c.Tunnel.Addr())), nft.SAddr(host(c.TunnelPeer)), nft.SetMark(markLocal), nft.Accept()},
			{known, nft.SAddrIn(setReal), nft.DAddrIn(setReachable), nft.Accept()},
			{nft.SAddrIn(setReal), nft.DAddrIn(setReachable), nft.SetCTMark(fromTunnel), nft.Accept()},
		}, exposed.fromTunnel, []nft.Rule{
			{nft.Counter(), nft.Drop()},
		})},
		{Name: "ingress", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityIngress}, Rules: append([]nft.Rule{
			{nft.IIf(Overlay), nft.Jump("from-overlay")},
			{nft.IIf(Tunnel), nft.Jump("from-tunnel")},
		}, exposed.answers...)},
		{Name: "echo", Rules: []nft.Rule{ // before established connections: no peer that is asked may send without bounds
			{nft.IIf(Overlay), nft.Limit(EchoesOfNodes, EchoesOfNodes), nft.Accept()},
			{nft.IIf(Tunnel), nft.Limit(echoesOfPeer, echoesOfPeer), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		{Name: "sizes", Rules: []nft.Rule{ // before established connections, too
			{nft.SAddrIn(setNodes), nft.Limit(sizesOfNodes, sizesOfNodes), nft.Accept()},
			{nft.Limit(sizesOfOthers, sizesOfOthers), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Drop: true}, Rules: forward},
		{Name: "input", Hook: &nft.Hook{Type: "filter", Point: "input", Drop: true}, Rules: c.input()},
	}
}

// input lets through what is for the gateway itself: the overlay, the tunnel, echoes and health.
func (c GatewayConfig) input() []nft.Rule {
	var handshakes []nft.Rule
	if c.ListenPort != 0 {
		handshakes = []nft.Rule{{nft.UDPDPort(c.ListenPort), nft.Accept()}}
	}
	return slices.Concat([]nft.Rule{
		{nft.UDPDPort(c.Overlay.Port), nft.IIfNot(Overlay), nft.IIfNot(Tunnel), nft.OverlayID(c.VNI), nft.SAddrIn(setNodes), nft.Accept()},
		{nft.Mark(markLocal), nft.UDPDPort(EchoPort), nft.Jump("echo")},
		{nft.UDPDPort(EchoPort), nft.IIfNot(Overlay), nft.IIfNot(Tunnel), nft.Jump("sizes")},
		{nft.CTState(nft.Established, nft.Related), nft.Accept()},
		{nft.IIf("lo"), nft.Accept()},
		{nft.Mark(markLocal), nft.ICMPType(icmpRequest), nft.Accept()},
		{nft.IIf(Overlay), nft.Counter(), nft.Drop()},
		{nft.IIf(Tunnel), nft.Counter(), nft.Drop()},
	}, handshakes, []nft.Rule{
		{nft.TCPDPort(HealthPort), nft.Accept()},
		{nft.ICMPType(icmpErrors...), nft.Accept()}, // overlay packets are not tracked: no error is related to them
		{nft.Counter(), nft.Drop()},
	})
}

// translation maps prefixes 1:1, by where a flow's first packet came from.
func (c GatewayConfig) translation() []nft.Chain {
	internal, external := lowerHalf(c.InternalCIDR), lowerHalf(c.ExternalCIDR)
	dnat := []nft.Rule{{nft.IIf(Tunnel), nft.DAddr(external), nft.DNATPrefix(internal)}}
	snat := []nft.Rule{{nft.OIf(Tunnel), nft.CTMark(fromOverlay), nft.SAddr(internal), nft.SNATPrefix(external)}}
	for _, m := range c.Peer {
		if m.Real == m.Seen {
			continue
		}
		dnat = append(dnat, nft.Rule{nft.IIf(Overlay), nft.DAddr(m.Seen), nft.DNATPrefix(m.Real)})
		snat = append(snat, nft.Rule{nft.OIf(Overlay), nft.CTMark(fromTunnel), nft.SAddr(m.Real), nft.SNATPrefix(m.Seen)})
	}
	if c.ListenPort != 0 {
		// The peer measures its way to here by echoes that go where the tunnel's packets do.
		dnat = append(dnat, nft.Rule{nft.IIfNot(Overlay), nft.IIfNot(Tunnel), nft.UDPDPort(c.ListenPort), nft.UDPBegins(echo.Magic), nft.DNATPort(EchoPort)})
	}
	exposed := c.exposure()
	dnat, snat = append(dnat, exposed.dnat...), append(snat, exposed.snat...)
	return []nft.Chain{
		{Name: "destination", Hook: &nft.Hook{Type: "nat", Point: "prerouting", Priority: priorityDNAT}, Rules: dnat},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: prioritySNAT}, Rules: snat},
		// No nat chain is consulted for ICMP errors of this side's nodes: they get their external address here.
		// The marks have done their work; one that stayed would steer the overlay's outer packet.
		{Name: "egress", Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityErrata}, Rules: append([]nft.Rule{
			{nft.OIf(Tunnel), nft.SAddr(internal), nft.ICMPType(icmpErrors...), nft.SetSAddrPrefix(external)},
			{nft.OIf(Overlay), nft.SetMark(0)},
		}, exposed.guard...)},
	}
}

// ownErrors steers the ICMP errors that the gateway itself makes. They are output lookups, to which rules by
// incoming interface do not apply: without this they would reach this cluster's pod of the same address.
func (c GatewayConfig) ownErrors() []nft.Chain {
	related := nft.CTState(nft.Related)
	return []nft.Chain{
		{Name: "errors", Rules: slices.Concat([]nft.Rule{
			{related, nft.CTMark(fromTunnel), nft.CTDirection(nft.Reply), nft.SetMark(markToPeer), nft.Accept()},
			{related, nft.CTMark(fromOverlay), nft.CTDirection(nft.Original), nft.SetMark(markToPeer), nft.Accept()},
			{related, nft.CTMark(fromTunnel), nft.CTDirection(nft.Original), nft.SetMark(markFromPeer), nft.Accept()},
			{related, nft.CTMark(fromOverlay), nft.CTDirection(nft.Reply), nft.SetMark(markFromPeer), nft.Accept()},
		}, c.exposure().errors, []nft.Rule{
			{nft.Counter(), nft.Drop()},
		})},
		{Name: "output", Hook: &nft.Hook{Type: "route", Point: "output", Priority: priorityIngress}, Rules: []nft.Rule{
			{nft.ICMPType(icmpErrors...), nft.Jump("errors")},
		}},
	}
}
