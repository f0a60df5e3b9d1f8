package netops

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/nft"
)

// HealthPort is the TCP port of a helper's probes and metrics.
const HealthPort = 6093

// Rule priorities in a gateway's namespace, all before the local table, so that a remote pod with the gateway
// pod's own address stays reachable.
const (
	priorityMarkLocal = 50
	priorityExposed   = 52
	priorityToPeer    = 53
	priorityFromPeer  = 54
	priorityErrors    = 55
)

// loopback is where, as rules and chains see it, packets come from that a namespace itself makes.
const loopback = "lo"

// Packet marks in a gateway's namespace; they never leave it.
const (
	markLocal   = 0x4c00 // for the gateway itself
	markError   = 0x4c01 // an ICMP error of the gateway's own, for the peer
	markExposed = 0x4c03 // between the peer and an exposed host
	markForSelf = 0x4c04 // an overlay packet that holds one for the gateway itself, within the limit of its node
)

// Echoes that a gateway takes in a second, and at once: of each node, which sends five if there are several gateways
// and thirty while it gets no answers; of all its nodes, of which there may be 5,000; and for each tunnel, whose far
// end sends 25 then and answers as many.
const (
	EchoesOfNode  = 100
	EchoesOfNodes = 25_000
	echoesOfPeer  = 100
)

// Requests in a second, and at once, by which paths outside overlay and tunnel are measured: of each node, which sends
// some fifty at once and a few each half minute; of all nodes; of the peer, whom the helper has asked or answered; and
// of all others. Which of these are answered is the helper's matter.
const (
	sizesOfNode      = 20
	sizesOfNodeBurst = 100
	sizesOfNodes     = 1000
	sizesOfPeer      = 200
	sizesOfOthers    = 50
)

// Packets to listen ports in a second, and at once, of senders to whom the tunnel has sent nothing in the last minute:
// of addresses with which it had a handshake; of each other one; and of all these. One is enough for a handshake. The
// burst is for a peer whose address changes while it sends.
const (
	peerRate       = 1000
	strangerRate   = 100
	strangerBurst  = 10_000
	strangersRate  = 1000
	strangersBurst = 20_000
)

// Sets of senders have room for all nodes of a cluster, half of the internal CIDR, and for so many others. 8,192
// strangers take 2 MiB.
const (
	sendersOfNodes = 1 << 15
	sendersOfPeer  = 1 << 8
	strangersMost  = 1 << 13
)

// Priorities of a gateway's chains that see connections: after conntrack (-200), before DNAT and after SNAT.
const (
	priorityConnections = -150
	priorityDNAT        = -100
	prioritySNAT        = 100
	priorityAfterSNAT   = 110
)

// Mapping is a range of the peer: its real addresses and those by which this cluster reaches them.
type Mapping = cidr.Mapping

// GatewayConfig is what a gateway of one peering must know.
type GatewayConfig struct {
	Overlay      OverlayConfig
	Pod          netip.Addr     // address of this gateway's pod
	Internal     netip.Addr     // this gateway's end of the overlay
	InternalCIDR netip.Prefix   // of this cluster; its first half belongs to nodes
	ExternalCIDR netip.Prefix   // of this cluster; its first half maps 1:1 to the nodes'
	Pods         []netip.Prefix // pod CIDRs of this cluster
	Peer         []Mapping      // the peer's pod and external CIDRs
	Exposed      []Exposed      // hosts outside the cluster that the peer may reach
	Nodes        []GatewayNode  // of those that have the same range, the first one gets its packets
	VNI          uint32
	Tunnels      []GatewayTunnel // to each gateway of the peer; at least one
	MTU          int             // bytes, of the largest packet that travels the whole path
	ClampMSS     bool
}

// GatewayTunnel is a tunnel to one of the peer's gateways. Packets of the peer come by any of them.
type GatewayTunnel struct {
	Link       string       // begins with Prefix
	Address    netip.Prefix // of this end
	Peer       netip.Addr   // of the far end
	ListenPort uint16       // UDP port at which the far end begins a handshake; 0: it never does
	// Carries packets for the peer. Those that do share them evenly; where none is used, all do.
	Used bool
}

// TunnelLink is the name of a gateway's link to the peer's gateway of that number, from 1.
func TunnelLink(number int) string {
	if number == 1 {
		return Tunnel
	}
	return Tunnel + strconv.Itoa(number)
}

func (t GatewayTunnel) nexthop() uint32 { return tunnelNexthopID(t.Address.Addr()) }

// GatewayNode is a node of this cluster as a gateway sees it.
type GatewayNode struct {
	Internal netip.Addr     // the node's end of the overlay
	Source   netip.Addr     // from where its overlay packets come, and where they are sent
	Pods     []netip.Prefix // ranges and single addresses of its pods
}

// GatewayState returns the state of the namespace of a gateway's pod.
func GatewayState(c GatewayConfig) State {
	s := State{
		Links:     []Link{c.Overlay.link(Overlay, c.Internal)},
		Addresses: []Address{{Link: Overlay, Prefix: cidr.Single(c.Internal)}},
		Routes: []Route{
			guardRoute(ToPeer, everything),
			guardRoute(FromPeer, everything),
			// Nobody is sent there: so is called, on its way to the peer, where the packets of nodes come from, and a
			// reverse path filter looks for that.
			{Table: FromPeer, Dst: cidr.Lower(c.ExternalCIDR), Type: Unicast, Link: Overlay},
		},
		Rules: []Rule{
			{Priority: priorityMarkLocal, Mark: markLocal, Table: localTable},
			{Priority: priorityToPeer, IIf: Overlay, Table: ToPeer},
			{Priority: priorityErrors, Mark: markError, Table: ToPeer},
			movedLocalRule,
		},
		LocalRuleMoved: true,
		Firewall:       c.firewall(),
		Firewall6:      firewall6(c.Overlay.Port),
	}
	exposed := c.exposure()
	s.Links, s.Rules = append(s.Links, exposed.links...), append(s.Rules, exposed.rules...)
	c.reachPeer(&s)
	c.reachNodes(&s)
	return s
}

// reachPeer adds what leads to the peer by the tunnels.
func (c GatewayConfig) reachPeer(s *State) {
	for _, t := range c.Tunnels {
		s.Links = append(s.Links, Link{
			Name: t.Link, Kind: KindDevice, MTU: c.MTU, Group: GroupTunnel, Forwarding: true,
			// Packets come also by a tunnel by which none are sent.
			MarkedPath: len(c.Exposed) > 0, LoosePath: len(c.Tunnels) > 1,
		})
		s.Addresses = append(s.Addresses, Address{Link: t.Link, Prefix: t.Address})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: t.nexthop(), Link: t.Link})
		s.Rules = append(s.Rules, Rule{Priority: priorityFromPeer, IIf: t.Link, Table: FromPeer})
	}
	tunnels := newGroup(ofKind(nexthopGroup, NexthopID(c.InternalCIDR, c.Internal)), c.Tunnels,
		GatewayTunnel.nexthop, func(t GatewayTunnel) bool { return t.Used })
	s.Groups = append(s.Groups, tunnels)
	for _, m := range c.Peer {
		s.Rules = append(s.Rules, Rule{Priority: priorityErrors, From: m.Seen, IIf: loopback, Table: FromPeer})
		// Packets for the peer go to its real addresses; those by which this cluster knows it are where its packets
		// come from.
		for _, p := range []netip.Prefix{m.Real, m.Seen} {
			s.Routes = append(s.Routes, Route{Table: ToPeer, Dst: p, Type: Unicast, Nexthop: tunnels.ID, MTU: c.MTU})
		}
	}
}

// reachNodes adds what leads to the nodes and their pods.
func (c GatewayConfig) reachNodes(s *State) {
	taken := map[netip.Prefix]bool{}
	for _, n := range c.Nodes {
		id := NexthopID(c.InternalCIDR, n.Internal)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: Overlay, IP: n.Internal, MAC: overlayMAC(n.Internal)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: id, Link: Overlay, Via: n.Internal, VNI: c.VNI, Dst: n.Source})
		s.Routes = append(s.Routes, Route{Table: mainTable, Dst: cidr.Single(n.Internal), Type: Unicast, Nexthop: id})
		for _, p := range append([]netip.Prefix{cidr.Single(n.Internal)}, n.Pods...) {
			if taken[p] {
				continue // a pod that moves is reported by both nodes for a moment, and by one that died for longer
			}
			taken[p] = true
			s.Routes = append(s.Routes, Route{Table: FromPeer, Dst: p, Type: Unicast, Nexthop: id, MTU: c.MTU})
		}
	}
}

var everything = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// Names of the sets of senders. Strangers can fill the set of strangers alone: in those of nodes are elements of
// setNodes, and in the others those to whom this gateway itself sends.
const (
	setNodes     = "nodes"     // where overlay packets come from
	setAsking    = "asking"    // those of them that send packets for the gateway itself
	setMeasuring = "measuring" // those of them that measure the path MTU
	setMeasured  = "measured"  // to whom the helper sends outside overlay and tunnel
	setKnown     = "known"     // to whom the tunnel sends, with ports
	setPeer      = "peer"      // with whom it had a handshake
	setStrangers = "strangers" // who send to a listen port, and are not known
)

// firewall is a gateway's nftables table: what comes from the cluster and from the peer is checked and translated
// before it is routed (translation.go), what is for the gateway itself by the chain input, what is for exposed hosts
// (exposed.go) with the help of connection tracking.
func (c GatewayConfig) firewall() nft.Table {
	var sources []netip.Prefix
	for _, n := range c.Nodes {
		sources = append(sources, cidr.Single(n.Source))
	}
	exposed := c.exposure()
	return nft.Table{
		Name: Table,
		Sets: slices.Concat([]nft.Set{
			{Name: setNodes, Hosts: true, Elements: cidr.Outermost(sources)},
			{Name: setAsking, Senders: sendersOfNodes, Timeout: time.Minute},
			{Name: setMeasuring, Senders: sendersOfNodes, Timeout: time.Minute},
			{Name: setMeasured, Senders: sendersOfNodes + sendersOfPeer, Timeout: time.Minute},
		}, where(c.listens(),
			nft.Set{Name: setKnown, Senders: sendersOfPeer, Ports: true, Timeout: time.Minute},
			nft.Set{Name: setPeer, Senders: sendersOfPeer, Timeout: 5 * time.Minute},
			nft.Set{Name: setStrangers, Senders: strangersMost, Ports: true, Timeout: time.Minute},
		), exposed.sets),
		Chains: slices.Concat(c.ingress(), c.fromCluster(), c.fromPeer(), c.quoted(), c.output(),
			c.input(), c.forward(), c.probes(), exposed.chains),
	}
}

// where returns the elements on a condition.
func where[T any](is bool, elements ...T) []T {
	if is {
		return elements
	}
	return nil
}

// eachListenPort returns a rule for each tunnel that has a listen port.
func (c GatewayConfig) eachListenPort(rule func(port uint16) nft.Rule) (rules []nft.Rule) {
	for _, t := range c.Tunnels {
		rules = append(rules, where(t.ListenPort != 0, rule(t.ListenPort))...)
	}
	return rules
}

// listens reports whether any far end begins handshakes.
func (c GatewayConfig) listens() bool {
	return slices.ContainsFunc(c.Tunnels, func(t GatewayTunnel) bool { return t.ListenPort != 0 })
}

// forward lets pass what goes between cluster and peer, and nothing else.
func (c GatewayConfig) forward() []nft.Chain {
	return []nft.Chain{
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Drop: true}, Rules: slices.Concat(
			where(c.ClampMSS, nft.Rule{nft.TCPSyn(), nft.ClampMSS(uint16(c.MTU - 40))}), // 40 = IPv4 20 + TCP 20
			[]nft.Rule{
				{nft.IIfGroup(GroupOverlay), nft.OIfGroup(GroupTunnel), nft.Accept()},
				{nft.IIfGroup(GroupTunnel), nft.OIfGroup(GroupOverlay), nft.Accept()},
			}, c.exposure().forward)},
	}
}

// input lets through what is for the gateway itself: the overlay, the tunnel, echoes and health. Echoes come before
// established connections: no peer that is asked may send without bounds.
//
// What a node sends to the gateway itself has its limit before it is taken out of the overlay: by the outer source, as
// any node could send as another one inside. A packet that only seems to hold another one has no mark, and is dropped
// where it comes out.
func (c GatewayConfig) input() []nft.Chain {
	fromNode := nft.SAddrIn(setNodes)
	echoes := []nft.Rule{{nft.IIfGroup(GroupOverlay), nft.Limit(EchoesOfNodes, EchoesOfNodes), nft.Accept()}}
	for _, t := range c.Tunnels {
		echoes = append(echoes, nft.Rule{nft.IIf(t.Link), nft.Limit(echoesOfPeer, echoesOfPeer), nft.Accept()})
	}
	return slices.Concat(c.strangers(), []nft.Chain{
		{Name: "echo", Rules: append(echoes, refusal)},
		{Name: "sizes", Rules: []nft.Rule{
			{fromNode, nft.Meter(setMeasuring, sizesOfNode, sizesOfNodeBurst), nft.Limit(sizesOfNodes, sizesOfNodes), nft.Accept()},
			{fromNode, nft.Counter(), nft.Drop()},
			{nft.SAddrIn(setMeasured), nft.Limit(sizesOfPeer, sizesOfPeer), nft.Accept()},
			{nft.Limit(sizesOfOthers, sizesOfOthers), nft.Accept()},
			refusal,
		}},
		{Name: "for-self", Rules: []nft.Rule{
			{
				// Pods of the node have no part in its limit.
				nft.OverlayID(c.VNI), fromNode, nft.InnerSAddr(cidr.Lower(c.InternalCIDR)),
				nft.Meter(setAsking, EchoesOfNode, EchoesOfNode), nft.SetMark(markForSelf), nft.Accept(),
			},
			refusal,
		}},
		{Name: "overlay", Rules: []nft.Rule{
			{nft.InnerDAddr(c.Internal), nft.Goto("for-self")},
			{nft.OverlayID(c.VNI), fromNode, nft.Accept()},
		}},
		{Name: "input", Hook: &nft.Hook{Type: "filter", Point: "input", Drop: true}, Rules: slices.Concat([]nft.Rule{
			{nft.UDPDPort(c.Overlay.Port), nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.Jump("overlay")},
			{nft.Mark(markLocal), nft.UDPDPort(EchoPort), nft.Jump("echo")},
			{nft.UDPDPort(EchoPort), nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.Jump("sizes")},
			{nft.CTState(nft.Established, nft.Related), nft.Accept()},
			{nft.IIf(loopback), nft.Accept()},
			{nft.Mark(markLocal), nft.ICMPType(icmpRequest), nft.Accept()},
			{nft.IIfGroup(GroupOverlay), nft.Counter(), nft.Drop()},
			{nft.IIfGroup(GroupTunnel), nft.Counter(), nft.Drop()},
		}, c.eachListenPort(func(port uint16) nft.Rule {
			return nft.Rule{nft.UDPDPort(port), nft.Goto("listen")}
		}), []nft.Rule{
			{nft.TCPDPort(HealthPort), nft.Accept()},
			// Packets of overlay and tunnel are not tracked: no error is related to them.
			{nft.ICMPType(icmpErrors...), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		})},
	})
}

// What messages of WireGuard begin with: a handshake's two, and data. The fourth kind asks anyone to prove an address.
const (
	initiation = "\x01\x00\x00\x00"
	response   = "\x02\x00\x00\x00"
	data       = "\x04\x00\x00\x00"
)

// strangers are the chains of what WireGuard sends and receives at listen ports. It sends these only to those who have
// the peer's key: from there anything is taken, and from others so much that a handshake gets through. kube-proxy hides
// those who come by one node behind one address: ports tell them apart. A client that renews its tunnel has another
// port.
func (c GatewayConfig) strangers() []nft.Chain {
	if !c.listens() {
		return nil
	}
	return []nft.Chain{
		{Name: "sent", Rules: []nft.Rule{
			{nft.UDPBegins(data), nft.NoteDFlow(setKnown), nft.Accept()},
			{nft.UDPBegins(response), nft.NoteDAddr(setPeer), nft.NoteDFlow(setKnown)},
			{nft.UDPBegins(initiation), nft.NoteDAddr(setPeer), nft.NoteDFlow(setKnown)},
		}},
		{Name: "listen", Rules: []nft.Rule{
			{nft.FlowIn(setKnown), nft.Accept()},
			{nft.SAddrIn(setPeer), nft.Limit(peerRate, peerRate), nft.Accept()},
			{nft.MeterFlow(setStrangers, strangerRate, strangerBurst), nft.Limit(strangersRate, strangersBurst), nft.Accept()},
			refusal,
		}},
	}
}

// probes lets the peer measure its way to here by echoes that go where the tunnel's packets do.
func (c GatewayConfig) probes() []nft.Chain {
	rules := append(c.eachListenPort(func(port uint16) nft.Rule {
		return nft.Rule{
			nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.UDPDPort(port), nft.UDPBegins(echo.Magic), nft.DNATPort(EchoPort),
		}
	}), c.exposure().dnat...)
	if len(rules) == 0 {
		return nil
	}
	return []nft.Chain{{Name: "destination", Hook: &nft.Hook{Type: "nat", Point: "prerouting", Priority: priorityDNAT}, Rules: rules}}
}
