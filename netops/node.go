package netops

import (
	"cmp"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/netops/nft"
)

// EchoPort is the UDP port at which nodes and gateways answer echoes, on internal and tunnel addresses only.
const EchoPort = 6092

// guardMetric makes the guard's unreachable routes lose against every other route to the same range.
const guardMetric = 1 << 30

// Rule priorities on a node: after Cilium's local rule (100), before its own (110) and AWS's (512 and up).
const (
	priorityExempt = 103
	priorityNode   = 104
)

// Priorities of the chains on a node's postrouting hook. Masquerading begins at 90 (kindnet), 100 elsewhere.
const (
	priorityRaw   = -300
	priorityGuard = 75
	priorityKeep  = 80
)

// Numbers of the kernel.
const (
	mainTable   = 254
	localTable  = 255
	icmpRequest = 8 // echo request
)

// icmpErrors are destination unreachable, time exceeded and parameter problem (RFC 792).
var icmpErrors = []uint8{3, 11, 12}

// OverlayConfig is the collect-metadata device of a node or gateway.
type OverlayConfig struct {
	Kind LinkKind
	Port uint16 // UDP
	MTU  int    // bytes, of the inner packets
}

// NodeConfig is what a node must know to reach the peers of its cluster.
type NodeConfig struct {
	Overlay      OverlayConfig
	Internal     netip.Addr     // this node's end of the overlay
	InternalCIDR netip.Prefix   // of the cluster
	Pods         []netip.Prefix // ranges and single addresses of this node's own pods
	Peers        []NodePeer
	HeldBack     []netip.Prefix // further ranges of peers, to which nothing leads: they are guarded alone
	PassForward  bool           // chains of others that drop forwarded packets get rules that let those of the overlay pass
}

// NodePeer is one peer as a node sees it.
type NodePeer struct {
	CIDRs   []netip.Prefix // by which the peer's pods, nodes and hosts are reached from here
	Nodes   netip.Prefix   // of them, where its nodes are; they alone may send echoes
	Gateway netip.Addr     // internal address of the gateway
	Pod     netip.Addr     // address of the gateway's pod; the zero value: not known, traffic is held back
	VNI     uint32
	MTU     int // bytes, of the largest packet that travels the whole path

	// Endpoints are where the peer's gateway is heard on the underlay, and looked for; none: not known.
	Endpoints []netip.Addr
}

// NodeState returns the state of the host namespace of a node.
func NodeState(c NodeConfig) State {
	s := State{
		Links:     []Link{c.Overlay.link(c.Internal)},
		Addresses: []Address{{Link: Overlay, Prefix: host(c.Internal)}},
		Routes:    []Route{guardRoute(RoutingTable, c.InternalCIDR)},
		Rules:     []Rule{{Priority: priorityNode, Table: RoutingTable}},
		Firewall:  c.firewall(),

		PassForward: c.PassForward,
	}
	for _, cidr := range c.HeldBack {
		s.Routes = append(s.Routes, guardRoute(RoutingTable, cidr))
	}
	taken := c.peerCIDRs()
	for _, p := range c.Peers {
		for _, cidr := range p.CIDRs {
			s.Routes = append(s.Routes, guardRoute(RoutingTable, cidr))
		}
		if !p.Pod.IsValid() {
			continue
		}
		id := NexthopID(c.InternalCIDR, p.Gateway)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: Overlay, IP: p.Gateway, MAC: overlayMAC(p.Gateway)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: id, Link: Overlay, Via: p.Gateway, VNI: p.VNI, Dst: p.Pod})
		s.Routes = append(s.Routes, Route{Table: RoutingTable, Dst: host(p.Gateway), Type: Unicast, Nexthop: id, MTU: p.MTU})
		for _, cidr := range p.CIDRs {
			s.Routes = append(s.Routes, Route{Table: RoutingTable, Dst: cidr, Type: Unicast, Nexthop: id, MTU: p.MTU})
		}
		for _, endpoint := range p.captured(taken) {
			s.Rules = append(s.Rules, Rule{Priority: priorityExempt, From: host(p.Pod), To: endpoint, Table: mainTable})
		}
	}
	return s
}

// captured are those of a peer's endpoints that are among all peers' ranges, so that packets to them would be taken for
// traffic to a peer, as where pods and nodes share a network. The gateway's own packets must not be. It is the gateway
// that says where it is and where it hears its peer: what it says exempts packets to these addresses, and never all
// that a pod sends.
func (p NodePeer) captured(taken []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, endpoint := range p.Endpoints {
		if slices.ContainsFunc(taken, func(cidr netip.Prefix) bool { return cidr.Contains(endpoint) }) {
			all = append(all, host(endpoint))
		}
	}
	return ranges(all)
}

func (c NodeConfig) peerCIDRs() []netip.Prefix {
	all := slices.Clone(c.HeldBack)
	for _, p := range c.Peers {
		all = append(all, p.CIDRs...)
	}
	return ranges(all)
}

// Names of the sets of a node's table.
const (
	setPeers            = "peers"             // every peer, as this side calls it
	setPods             = "pods"              // pods of this node
	setGateways         = "gateways"          // pods of gateways: the far ends of the overlay
	setEndpoints        = "endpoints"         // of peers' tunnels, where they are among setPeers
	setGatewayAddresses = "gateway-addresses" // internal ones, from which gateways ask
)

// firewall is a node's nftables table.
func (c NodeConfig) firewall() nft.Table {
	var gatewayPods, gatewayAddresses, captured []netip.Prefix
	taken := c.peerCIDRs()
	for _, p := range c.Peers {
		if p.Pod.IsValid() {
			gatewayPods = append(gatewayPods, host(p.Pod))
			captured = append(captured, p.captured(taken)...)
		}
		gatewayAddresses = append(gatewayAddresses, host(p.Gateway))
	}
	return nft.Table{
		Name: Table,
		Sets: []nft.Set{
			{Name: setPeers, Elements: taken},
			{Name: setPods, Elements: ranges(c.Pods)},
			{Name: setGateways, Hosts: true, Elements: ranges(gatewayPods)},
			{Name: setEndpoints, Hosts: true, Elements: ranges(captured)},
			{Name: setGatewayAddresses, Hosts: true, Elements: ranges(gatewayAddresses)},
		},
		Chains: c.chains(),
	}
}

// chains are those of a node's table. They know the overlay by its group, which costs least. Where a link in the wrong
// group would let packets in unchecked, they ask for its name, too, behind what most packets of peers meet; elsewhere
// such a link only holds packets back.
//
// Order on the postrouting hook: guard, then the mark is cleared, then the source
// is bound before any CNI's masquerade: a binding ends the kernel's search for one, an accept does not.
func (c NodeConfig) chains() []nft.Chain {
	overlay := nft.UDPDPort(c.Overlay.Port)
	return []nft.Chain{
		// No rule of a CNI or of kube-proxy translates the overlay's own packets.
		{Name: "overlay-in", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: []nft.Rule{
			{overlay, nft.SAddrIn(setGateways), nft.NoTrack(), nft.Accept()},
			{overlay, nft.DAddrIn(setGateways), nft.NoTrack()},
		}},
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: []nft.Rule{
			{overlay, nft.DAddrIn(setGateways), nft.NoTrack()},
		}},
		{Name: "input", Hook: &nft.Hook{Type: "filter", Point: "input", Priority: -10}, Rules: []nft.Rule{
			{overlay, nft.SAddrIn(setGateways), nft.Accept()},
			{overlay, nft.Counter(), nft.Drop()},
			{nft.IIfNot(Overlay), nft.Accept()},
			{nft.UDPDPort(EchoPort), nft.Jump("echo")},
			{nft.CTState(nft.Established, nft.Related), nft.Accept()},
			{nft.DAddr(host(c.Internal)), nft.ICMPType(icmpRequest), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		{Name: "echo", Rules: c.echoes(setGatewayAddresses)},
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Priority: -10}, Rules: []nft.Rule{
			{nft.IIfGroupNot(GroupOverlay), nft.OIfGroup(GroupOverlay), nft.Accept()},
			{nft.IIfGroupNot(GroupOverlay), nft.IIfNot(Overlay), nft.Accept()},
			{nft.CTState(nft.Established, nft.Related), nft.Accept()},
			{nft.DAddrIn(setGateways), nft.Counter(), nft.Drop()}, // pods, too, but not for a peer
			{nft.SAddrIn(setPeers), nft.DAddrIn(setPods), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		// Traffic for a peer leaves by the overlay or not at all; a gateway's own packets carry the tunnel, in UDP, whose
		// other end may have an address of the peer's.
		{Name: "guard", Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityGuard}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.SetMark(0), nft.Accept()},
			{nft.DAddrIn(setPeers), nft.Jump("past-overlay")},
		}},
		{Name: "past-overlay", Rules: []nft.Rule{
			{nft.SAddrIn(setGateways), nft.DAddrIn(setEndpoints), nft.Protocol(nft.UDP), nft.Accept()},
			{nft.Counter(), nft.Drop()},
		}},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: priorityKeep}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.SAddrIn(setPods), nft.SNATKeep()},
			{nft.OIfGroup(GroupOverlay), nft.SNAT(c.Internal)},
		}},
	}
}

// Echoes that a node takes in a second, and at once: of all gateways, and of each peer. A peer of 1,000 nodes, which
// share eight of this cluster's, sends 60.
const (
	nodeEchoRate = 1000
	peerEchoRate = 200
)

// echoes lets through what nodes and gateways ask and answer, and of no peer so much that others would suffer. It
// comes before established connections: whom this node asks could else send without bounds.
func (c NodeConfig) echoes(gateways string) []nft.Rule {
	self := nft.DAddr(host(c.Internal))
	rules := []nft.Rule{{self, nft.SAddrIn(gateways), nft.Limit(nodeEchoRate, nodeEchoRate), nft.Accept()}}
	for _, p := range c.Peers {
		if p.Nodes.IsValid() {
			rules = append(rules, nft.Rule{self, nft.SAddr(p.Nodes), nft.Limit(peerEchoRate, peerEchoRate), nft.Accept()})
		}
	}
	return append(rules, nft.Rule{nft.Counter(), nft.Drop()})
}

// NexthopID returns the id of the nexthop object for a far end, from its internal address.
func NexthopID(internalCIDR netip.Prefix, internal netip.Addr) uint32 {
	base, a := internalCIDR.Masked().Addr().As4(), internal.As4()
	return NexthopBase | (binary.BigEndian.Uint32(a[:])-binary.BigEndian.Uint32(base[:]))&^uint32(NexthopMask)
}

func (o OverlayConfig) link(internal netip.Addr) Link {
	return Link{Name: Overlay, Kind: o.Kind, MAC: overlayMAC(internal), MTU: o.MTU, Port: o.Port, Group: GroupOverlay, Forwarding: true}
}

// overlayMAC is the MAC address of an end of the overlay: locally administered, from its internal address.
// Ends must differ: the drivers drop a frame that bears their own.
func overlayMAC(internal netip.Addr) net.HardwareAddr {
	a := internal.As4()
	return net.HardwareAddr{0x02, 0x4c, a[0], a[1], a[2], a[3]}
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func guardRoute(table int, dst netip.Prefix) Route {
	return Route{Table: table, Dst: dst, Type: Unreachable, Metric: guardMetric}
}

// ranges returns the prefixes sorted and without those that others contain, as an nftables set wants them.
func ranges(in []netip.Prefix) []netip.Prefix {
	all := slices.Clone(in)
	slices.SortFunc(all, comparePrefix)
	var out []netip.Prefix
	for _, p := range all {
		if n := len(out); n > 0 && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
