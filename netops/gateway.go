package netops

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// HealthPort is the TCP port of a helper's probes and metrics.
const HealthPort = 6093

// Rule priorities in a gateway's namespace. All precede the local table, so that a remote pod with the gateway pod's
// own address is reachable.
const (
	priorityMarkLocal = 50
	priorityCarried   = 51
	priorityExposed   = 52
	priorityToPeer    = 53
	priorityFromPeer  = 54
	priorityErrors    = 55
)

// Loopback is the incoming link, in rules and chains, of packets that the namespace itself sends.
const Loopback = "lo"

// Packet marks in a gateway's namespace. They never leave it.
const (
	markLocal   = 0x4c00 // for the gateway itself
	markError   = 0x4c01 // ICMP error sent by the gateway itself to the peer
	markExposed = 0x4c03 // between the peer and an exposed host
	markForSelf = 0x4c04 // overlay packet with an inner packet for the gateway itself, within the node's limit
)

// Limits of echoes that a gateway accepts per second, and as a burst: of each node, which sends five if there are
// several gateways and thirty while it receives no replies; of all nodes, of which there may be 5,000; and of each
// tunnel, whose remote end then sends 25 and answers as many.
const (
	EchoesOfNode  = 100
	EchoesOfNodes = 25_000
	echoesOfPeer  = 100
)

// Limits per second, and as a burst, of requests that measure paths outside overlay and tunnel: of each node, which
// sends about fifty at once and a few every thirty seconds; of all nodes; of the peer, if the helper has sent to it;
// and of all others. The helper decides which of these it answers.
const (
	sizesOfNode      = 20
	sizesOfNodeBurst = 100
	sizesOfNodes     = 1000
	sizesOfPeer      = 200
	sizesOfOthers    = 50
)

// Sizes of the sets of senders: for all nodes of a cluster, half of the internal CIDR, for addresses of the peer, and
// for unknown senders. 8,192 unknown senders take 2 MiB.
const (
	sendersOfNodes = 1 << 15
	sendersOfPeer  = 1 << 8
	strangersMost  = 1 << 13
)

// Priorities of a gateway's chains that use connections: after conntrack (-200), before DNAT and after SNAT.
const (
	priorityConnections = -150
	priorityDNAT        = -100
	prioritySNAT        = 100
	priorityAfterSNAT   = 110
)

// Mapping is a range of the peer: its real addresses and the addresses by which this cluster reaches them.
type Mapping = cidr.Mapping

// GatewayConfig is the input for the state of a gateway of one peering in one address family, as for NodeConfig.
type GatewayConfig struct {
	Overlay      OverlayConfig
	Pod          netip.Addr     // address of this gateway pod
	Internal     netip.Addr     // this gateway's overlay address
	InternalCIDR netip.Prefix   // of this cluster; its first half belongs to nodes
	ExternalCIDR netip.Prefix   // of this cluster; its first half maps 1:1 to the nodes' internal addresses
	Pods         []netip.Prefix // pod CIDRs of this cluster
	Peer         []Mapping      // the peer's pod and external CIDRs
	Exposed      []Exposed      // hosts outside the cluster that the peer reaches
	Nodes        []GatewayNode  // the first node with a pod range receives its packets
	VNI          uint32
	Tunnels      []GatewayTunnel // to each gateway of the peer; at least one
	MTU          int             // bytes: largest packet that fits the whole path
	ClampMSS     bool
	Carries      bool   // has the path of packets with MarkCarried
	Plain        *Plain // its tunnels have no encryption; nil: they have
	// WebSocketPort is the TCP port at which the peer's gateways connect; 0: none.
	WebSocketPort uint16
}

// GatewayTunnel is a tunnel to one of the peer's gateways. Packets from the peer arrive on any of them.
type GatewayTunnel struct {
	Link       string       // has the prefix Prefix
	Address    netip.Prefix // of the local end
	Peer       netip.Addr   // of the remote end
	ListenPort uint16       // UDP port to which the remote end sends handshakes; 0: it never does
	// Used tunnels carry packets for the peer, evenly distributed. If none is used, all do.
	Used bool
}

// TunnelLink returns the name of a gateway's link to the peer's gateway of that number, counted from 1.
func TunnelLink(number int) string {
	if number == 1 {
		return Tunnel
	}
	return Tunnel + strconv.Itoa(number)
}

func (t GatewayTunnel) nexthop() uint32 { return tunnelNexthopID(t.Address.Addr()) }

// GatewayNode is a node of this cluster in the configuration of a gateway.
type GatewayNode struct {
	Internal netip.Addr     // the node's overlay address
	Source   netip.Addr     // source and destination of its overlay packets
	Pods     []netip.Prefix // CIDRs and single addresses of its pods
}

// GatewayState returns the desired state of the network namespace of a gateway pod, from its configuration for each
// address family; see joined.
func GatewayState(families ...GatewayConfig) State {
	return joined(families, GatewayConfig.shared, GatewayConfig.paths)
}

// shared returns links and the packet filter.
func (c GatewayConfig) shared() State {
	s := State{
		Links:          append(c.exposure().links, c.Overlay.link(Overlay, c.Internal)),
		LocalRuleMoved: true,
		Firewall:       c.firewall(),
		Firewall6:      firewall6(c.Overlay.Port),
	}
	for _, t := range c.Tunnels {
		s.Links = append(s.Links, Link{
			Name: t.Link, Kind: KindDevice, MTU: c.MTU, Group: GroupTunnel, Forwarding: true,
			// Packets also arrive on tunnels that are not used for sending.
			MarkedPath: len(c.Exposed) > 0, LoosePath: len(c.Tunnels) > 1,
		})
	}
	return s
}

// paths returns the paths between cluster and peer and their guard.
func (c GatewayConfig) paths() State {
	everything := netip.PrefixFrom(c.Internal, 0).Masked()
	s := State{
		Addresses: []Address{{Link: Overlay, Prefix: cidr.Single(c.Internal)}},
		Routes: []Route{
			GuardRoute(ToPeer, everything),
			GuardRoute(FromPeer, everything),
			// Reverse route for rp_filter only; no packet takes it. These are the source addresses of nodes in packets
			// to the peer.
			{Table: FromPeer, Dst: cidr.Lower(c.ExternalCIDR), Type: Unicast, Link: Overlay},
		},
		Rules: []Rule{
			{Priority: priorityMarkLocal, Mark: markLocal, Table: LocalTable},
			{Priority: priorityToPeer, IIf: Overlay, Table: ToPeer},
			{Priority: priorityErrors, Mark: markError, Table: ToPeer},
			MovedLocalRule,
		},
	}
	rules, routes := c.carried()
	s.Rules, s.Routes = slices.Concat(s.Rules, rules, c.exposure().rules), append(s.Routes, routes...)
	c.addPeer(&s)
	c.addNodes(&s)
	return s
}

// addPeer adds nexthops, rules and routes to the peer.
func (c GatewayConfig) addPeer(s *State) {
	for _, t := range c.Tunnels {
		s.Addresses = append(s.Addresses, Address{Link: t.Link, Prefix: t.Address})
		nexthop := Nexthop{ID: t.nexthop(), Link: t.Link}
		if c.Plain != nil {
			nexthop.Via = t.Peer
			s.Neighbours = append(s.Neighbours, Neighbour{Link: t.Link, IP: t.Peer, MAC: OverlayMAC(t.Peer)})
		}
		s.Nexthops = append(s.Nexthops, nexthop)
		s.Rules = append(s.Rules, Rule{Priority: priorityFromPeer, IIf: t.Link, Table: FromPeer})
	}
	tunnels := newGroup(ofKind(NexthopGroupBase, NexthopID(c.InternalCIDR, c.Internal)), c.Tunnels,
		GatewayTunnel.nexthop, func(t GatewayTunnel) bool { return t.Used })
	s.Groups = append(s.Groups, tunnels)
	for _, m := range c.Peer {
		s.Rules = append(s.Rules, Rule{Priority: priorityErrors, From: m.Seen, IIf: Loopback, Table: FromPeer})
		// Packets to the peer have its real addresses as destination. The addresses by which this cluster reaches it
		// are sources of its packets.
		for _, p := range []netip.Prefix{m.Real, m.Seen} {
			s.Routes = append(s.Routes, Route{Table: ToPeer, Dst: p, Type: Unicast, Nexthop: tunnels.ID, MTU: c.MTU})
		}
	}
}

// addNodes adds neighbours, nexthops and routes to the nodes and their pods.
func (c GatewayConfig) addNodes(s *State) {
	taken := map[netip.Prefix]bool{}
	for _, n := range c.Nodes {
		id := NexthopID(c.InternalCIDR, n.Internal)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: Overlay, IP: n.Internal, MAC: OverlayMAC(n.Internal)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: id, Link: Overlay, Via: n.Internal, VNI: c.VNI, Dst: n.Source})
		s.Routes = append(s.Routes, Route{Table: MainTable, Dst: cidr.Single(n.Internal), Type: Unicast, Nexthop: id})
		for _, p := range append([]netip.Prefix{cidr.Single(n.Internal)}, n.Pods...) {
			if taken[p] {
				continue // both nodes report a moved pod for a moment, a dead node for longer
			}
			taken[p] = true
			s.Routes = append(s.Routes, Route{Table: FromPeer, Dst: p, Type: Unicast, Nexthop: id, MTU: c.MTU})
		}
	}
}

// Names of the sets of senders. Unknown senders can only fill the set of strangers: the sets of nodes contain only
// elements of setNodes, that of carried.go has senders of connections, and the others only addresses to which this
// gateway sends.
const (
	setNodes     = "nodes"     // sources of overlay packets
	setAsking    = "asking"    // nodes that send packets for the gateway itself
	setMeasuring = "measuring" // nodes that measure the path MTU
	setMeasured  = "measured"  // destinations of the helper outside overlay and tunnel
	setKnown     = "known"     // destinations of the tunnel, with ports
	setPeer      = "peer"      // addresses with which the tunnel had a handshake
	setStrangers = "strangers" // unknown senders to a listen port
)

// firewall returns a gateway's nftables table. Packets from the cluster and from the peer are checked and translated
// before they are routed (translation.go), packets for the gateway itself are checked in chain input, packets for
// exposed hosts (exposed.go) with connection tracking.
func (c GatewayConfig) firewall() nft.Table {
	var sources []netip.Prefix
	for _, n := range c.Nodes {
		sources = append(sources, cidr.Single(n.Source))
	}
	exposed, webSocket := c.exposure(), c.webSocket()
	return nft.Table{
		Name: Table,
		Sets: slices.Concat([]nft.Set{
			{Name: setNodes, Hosts: true, Elements: cidr.Outermost(sources)},
			{Name: setAsking, Senders: sendersOfNodes, Timeout: time.Minute},
			{Name: setMeasuring, Senders: sendersOfNodes, Timeout: time.Minute},
			{Name: setMeasured, Senders: sendersOfNodes + sendersOfPeer, Timeout: time.Minute},
		}, c.senders(), webSocket.sets, exposed.sets),
		Chains: slices.Concat(c.ingress(), c.fromCluster(), c.fromPeer(), c.quoted(), c.output(),
			webSocket.chains, c.input(), c.forward(), c.probes(), exposed.chains),
	}
}

// onlyIf returns the elements if the condition is true.
func onlyIf[T any](is bool, elements ...T) []T {
	if is {
		return elements
	}
	return nil
}

// forward accepts packets between cluster and peer, and drops all others.
func (c GatewayConfig) forward() []nft.Chain {
	return []nft.Chain{
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Drop: true}, Rules: slices.Concat(
			onlyIf(c.ClampMSS, nft.Rule{nft.TCPSyn(), nft.ClampMSS(uint16(c.MTU - 40))}), // 40 = IPv4 20 + TCP 20
			[]nft.Rule{
				{nft.IIfGroup(GroupOverlay), nft.OIfGroup(GroupTunnel), nft.Accept()},
				{nft.IIfGroup(GroupTunnel), nft.OIfGroup(GroupOverlay), nft.Accept()},
			}, c.exposure().forward)},
	}
}

// input accepts packets for the gateway itself: overlay, tunnel, echoes and health checks. Echoes come before
// established connections; otherwise a peer that receives echoes could send without a limit.
//
// Packets that a node sends to the gateway itself are limited before decapsulation, by outer source: the inner source
// can be forged by any node. If the inner packet is not what the outer rules matched, it has no mark and is dropped
// after decapsulation.
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
				// Pods of the node do not count against its limit.
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
			{nft.IIf(Loopback), nft.Accept()},
			{nft.Mark(markLocal), nft.ICMPType(icmpRequest), nft.Accept()},
			{nft.IIfGroup(GroupOverlay), nft.Counter(), nft.Drop()},
			{nft.IIfGroup(GroupTunnel), nft.Counter(), nft.Drop()},
		}, c.eachListenPort(func(port uint16) nft.Rule {
			return nft.Rule{nft.UDPDPort(port), nft.Goto(c.listenChain(port))}
		}), c.webSocket().input, []nft.Rule{
			{nft.TCPDPort(HealthPort), nft.Accept()},
			// Packets of overlay and tunnel are not tracked, so that ICMP errors for them are not related.
			{nft.ICMPType(icmpErrors...), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		})},
	})
}
