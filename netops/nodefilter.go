package netops

import (
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// Priorities of a node's chains.
const (
	priorityPieces = -450 // before fragments are reassembled (-400)
	priorityRaw    = -300
	// priorityArrival is after conntrack (-200), so that replies are known, and before the hooks that may divert a
	// packet: mangle (-150), where packets are passed to proxies, and DNAT (-100).
	priorityArrival = -190
	priorityFilter  = -10
	// Masquerading is at priority 90 (kindnet), or 100.
	priorityGuard = 75
	priorityKeep  = 80
)

// Names of the sets of a node's table.
const (
	SetPeers     = "peers"     // ranges of all peers, as this cluster reaches them
	setPods      = "pods"      // of this node
	setGateways  = "gateways"  // gateway pods: the remote ends of the overlay
	setLocal     = "local"     // gateway pods on this node
	setEndpoints = "endpoints" // endpoints of peers' tunnels that are in setPeers
)

// firewall returns a node's nftables table.
func (c NodeConfig) firewall() nft.Table {
	var gateways, local, captured []netip.Prefix
	taken := c.PeerCIDRs()
	for _, p := range c.Peers {
		for _, g := range p.reachable() {
			gateways = append(gateways, cidr.Single(g.Pod))
			local = append(local, onlyIf(g.Local, cidr.Single(g.Pod))...)
			captured = append(captured, p.captured(taken)...)
		}
	}
	sets := []nft.Set{
		nft.NewSet(SetPeers, taken...),
		nft.NewSet(setPods, c.Pods...),
		{Name: setGateways, Hosts: true, Elements: cidr.Outermost(gateways)},
		{Name: setLocal, Hosts: true, Elements: cidr.Outermost(local)},
		{Name: setEndpoints, Hosts: true, Elements: cidr.Outermost(captured)},
	}
	for _, p := range c.Peers { // one set per peer, so that a peer with forged addresses can only fill its own
		receivesEchoes := len(p.reachable()) > 0 && p.Nodes.IsValid()
		sets = append(sets, onlyIf(receivesEchoes, nft.Set{Name: echoChain + p.Name, Senders: peerNodesMost, Timeout: time.Minute})...)
	}
	return nft.Table{
		Name:   Table,
		Sets:   sets,
		Chains: append(c.arrivals(), c.departures()...),
	}
}

// arrivals returns the chains for packets from gateways.
//
// The outer packet must come from the pod of the gateway that has its VNI: VXLAN itself does not check the source
// (vxlan_rcv in drivers/net/vxlan/vxlan_core.c). The link therefore identifies the gateway of the inner packet. Each
// peer has a chain with its ranges for the links of its gateways, used or not. Rules match links by name instead of
// group here: a link outside its group is checked as well.
//
// Packets for a pod or for the node are checked before DNAT. Otherwise a Service's NodePort, external IP or a hostPort
// would let a peer's packet bypass the restriction to pods, and network policies of the pod behind it. Replies are
// recognised by their direction in the connection: the state established alone also matches connections opened by
// another host with a forged address of the peer.
//
// Fragments are checked by address before they are reassembled: the kernel does not compare their links (ip_frag_queue
// in net/ipv4/ip_fragment.c), and the reassembled packet has the link of the last fragment.
func (c NodeConfig) arrivals() []nft.Chain {
	overlay, self := nft.UDPDPort(c.Overlay.Port), nft.DAddr(cidr.Single(c.Internal))
	var outer, forged, pieces []nft.Rule
	// If this node accepts source routes, packets for its own addresses would be forwarded.
	inner := []nft.Rule{{nft.Options(), nft.Counter(), nft.Drop()}}
	// A mark of the outer packet is kept by decapsulation: Cilium would treat the peer's packets as those of the
	// gateway pod.
	mark := uint32(0)
	if c.several() {
		mark = MarkArrival
	}
	inner = append(inner, nft.Rule{nft.SetMark(mark)})
	var chains []nft.Chain
	for _, p := range c.Peers {
		for _, g := range p.reachable() {
			outer = append(outer, nft.Rule{nft.SAddr(cidr.Single(g.Pod)), nft.OverlayID(g.VNI), nft.Accept()})
			forged = append(forged, nft.Rule{nft.SAddrIn(setPods), nft.OverlayID(g.VNI), nft.Counter(), nft.Drop()})
			inner = append(inner, nft.Rule{nft.IIf(NodeLink(g.VNI)), nft.Goto(arrivalChain + p.Name)})
			pieces = append(pieces, nft.Rule{nft.IIf(NodeLink(g.VNI)), nft.Goto(pieceChain + p.Name)})
		}
		if len(p.reachable()) > 0 {
			chains = append(chains, p.arrivals(self)...)
		}
	}
	return slices.Concat(chains, c.destinations(self), []nft.Chain{
		// Other pods of this node must not send with a gateway's VNI. A node without connection to the API server still
		// accepts packets from the address of a replaced gateway, which may belong to another pod now.
		{Name: "untracked", Rules: append(append([]nft.Rule{
			{nft.SAddrIn(setGateways), nft.NoTrack(), nft.Accept()},
		}, forged...), nft.Rule{nft.DAddrIn(setGateways), nft.NoTrack()})},
		{Name: "outer", Rules: append(outer, refusal)},
		{Name: "inner", Rules: append(inner, refusal)},
		{Name: "pieces", Rules: append(pieces, []nft.Rule{
			{nft.IIfPrefix(Prefix), nft.Counter(), nft.Drop()},
			{nft.SAddrIn(setEndpoints), nft.Accept()}, // of the tunnel
			{nft.SAddrIn(SetPeers), nft.Counter(), nft.Drop()},
		}...)},
		{Name: "fragments", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityPieces}, Rules: []nft.Rule{
			{nft.Fragment(), nft.Goto("pieces")},
		}},
		// The overlay's own packets are not tracked, so that no CNI or kube-proxy rule translates them.
		{Name: "overlay-in", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: []nft.Rule{
			{overlay, nft.Goto("untracked")}, // the only rule that all other packets traverse here
		}},
		{Name: "arrival", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityArrival}, Rules: []nft.Rule{
			{nft.IIfPrefix(Prefix), nft.Goto("inner")},
		}},
		{Name: "input", Hook: &nft.Hook{Type: "filter", Point: "input", Priority: priorityFilter}, Rules: []nft.Rule{
			{overlay, nft.Goto("outer")},
			{nft.IIfPrefix(Prefix), nft.Goto("into-node")},
			// Only gateways may send to the node's overlay address, which answers echoes.
			{self, nft.IIfNot(Loopback), nft.Counter(), nft.Drop()},
		}},
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Priority: priorityFilter}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.Goto("into-overlay")},
			{nft.IIfPrefix(Prefix), nft.Goto("out-of-overlay")},
		}},
	})
}

// destinations returns the chains for packets from a peer to pods and to the node itself.
func (c NodeConfig) destinations(self nft.Expr) []nft.Chain {
	routed := onlyIf(c.several(), nft.Rule{nft.Mark(MarkArrival), nft.SetMark(0)})
	return []nft.Chain{
		{Name: "to-pods", Rules: []nft.Rule{
			// Peers do not reach gateway pods. This set has the gateways of this node only: reports of other nodes are
			// not trusted, and could contain the address of a pod on this node.
			{nft.DAddrIn(setLocal), nft.Counter(), nft.Drop()},
			{nft.DAddrIn(setPods), nft.Accept()},
			{nft.Goto("to-node")},
		}},
		{Name: "to-node", Rules: []nft.Rule{
			{self, nft.CTState(nft.Established, nft.Related), nft.CTDirection(nft.Reply), nft.Accept()},
			{self, nft.ICMPType(icmpRequest), nft.Accept()},
			refusal,
		}},
		// After all translation: pod ranges can contain addresses of the node.
		{Name: "into-node", Rules: append(slices.Clone(routed), []nft.Rule{
			{nft.CTState(nft.Established, nft.Related), nft.CTDirection(nft.Reply), nft.Accept()},
			{nft.CTTranslated(), nft.Counter(), nft.Drop()},
			{self, nft.Accept()},
			refusal,
		}...)},
		{Name: "out-of-overlay", Rules: append(slices.Clone(routed), nft.Rule{
			nft.CTDirection(nft.Original), nft.CTTranslated(), nft.Counter(), nft.Drop(),
		})},
	}
}

// SourcesDiffer reports whether the observed table differs from the desired one in the rules that translate packets:
// connections that begin meanwhile get another source, which they keep.
func SourcesDiffer(have, want nft.Table) bool {
	translating := func(c nft.Chain) bool { return c.Hook != nil && c.Hook.Type == "nat" }
	have.Chains, want.Chains = Only(have.Chains, translating), Only(want.Chains, translating)
	have.Sets = want.Sets
	return len(want.Chains) > 0 && !nft.Diff(have, want).Empty()
}

// guardChain drops packets for peers that do not leave on the overlay.
const guardChain = "guard"

// Prefixes of the names of a peer's chains.
const (
	arrivalChain = "from-"
	echoChain    = "echo-"
	pieceChain   = "pieces-"
	quotedChain  = "quoted-"
)

// Limits of echoes that a node accepts per second, and as a burst: from one gateway of a peer, from each of the peer's
// nodes, and from all of these. A peer with 1,000 nodes, which share eight gateways of this cluster, sends 60; each
// node sends four if the peer has eight gateways.
const (
	gatewayEchoRate = 200
	peerNodeRate    = 10
	peerNodeBurst   = 40
	peerEchoRate    = 200
	peerNodesMost   = 1 << 12 // nodes with a limit of their own
)

// arrivals returns the chains for packets from the peer's gateways: the gateway's own packets have its internal
// address, all others an address of the peer. Echoes come before established connections; otherwise hosts that receive
// echoes could send without a limit. ICMP errors must quote packets to the peer; otherwise its gateways could close
// other connections, or reduce their path MTU.
func (p NodePeer) arrivals(self nft.Expr) []nft.Chain {
	echo, quoted := echoChain+p.Name, quotedChain+p.Name
	rules := []nft.Rule{
		{nft.ICMPType(icmpQuoting...), nft.Jump(quoted)},
		{self, nft.UDPDPort(EchoPort), nft.Goto(echo)},
	}
	errors := []nft.Rule{{nft.ICMPType(icmpObsolete...), nft.Counter(), nft.Drop()}}
	var pieces, echoes []nft.Rule
	for _, seen := range p.CIDRs {
		rules = append(rules, nft.Rule{nft.SAddr(seen), nft.Goto("to-pods")})
		pieces = append(pieces, nft.Rule{nft.SAddr(seen), nft.Accept()})
		errors = append(errors, nft.Rule{nft.QuotedDAddr(seen), nft.Return()})
	}
	for _, g := range p.reachable() {
		address, link := cidr.Single(g.Internal), nft.IIf(NodeLink(g.VNI))
		rules = append(rules, nft.Rule{nft.SAddr(address), link, nft.Goto("to-node")})
		pieces = append(pieces, nft.Rule{nft.SAddr(address), link, nft.Accept()})
		errors = append(errors, nft.Rule{nft.QuotedDAddr(address), link, nft.Return()})
		echoes = append(echoes, nft.Rule{nft.SAddr(address), link, nft.Limit(gatewayEchoRate, gatewayEchoRate), nft.Accept()})
	}
	if p.Nodes.IsValid() {
		echoes = append(echoes, nft.Rule{
			nft.SAddr(p.Nodes), nft.Meter(echo, peerNodeRate, peerNodeBurst), nft.Limit(peerEchoRate, peerEchoRate), nft.Accept(),
		})
	}
	return []nft.Chain{
		{Name: echo, Rules: append(echoes, refusal)},
		{Name: quoted, Rules: append(errors, refusal)},
		{Name: pieceChain + p.Name, Rules: append(pieces, refusal)},
		{Name: arrivalChain + p.Name, Rules: append(rules, refusal)},
	}
}

// tunnels accept packets of a gateway to the captured endpoints of its own peering.
func (c NodeConfig) tunnels() (rules []nft.Rule) {
	taken := c.PeerCIDRs()
	for _, p := range c.Peers {
		for _, g := range p.reachable() {
			for _, endpoint := range p.captured(taken) {
				rules = append(rules, nft.Rule{nft.SAddr(cidr.Single(g.Pod)), nft.DAddr(endpoint), nft.Protocol(nft.UDP), nft.Accept()})
			}
		}
	}
	return rules
}

// departures returns the chains for packets to peers. Order on the postrouting hook: the guard, then the mark is
// cleared, then the source is set before any CNI's masquerading. A NAT binding ends the kernel's evaluation of nat
// chains, an accept verdict does not.
func (c NodeConfig) departures() []nft.Chain {
	return []nft.Chain{
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: []nft.Rule{
			{nft.UDPDPort(c.Overlay.Port), nft.DAddrIn(setGateways), nft.NoTrack()},
		}},
		// Of forwarded packets, only those from this node's pods and those that the node translated, as for a Service,
		// are sent to peers. The node does not route packets of other hosts: they would reach the peer with the node's
		// address.
		{Name: "into-overlay", Rules: []nft.Rule{
			{nft.SAddrIn(setPods), nft.Accept()},
			{nft.CTTranslated(), nft.Accept()},
			refusal,
		}},
		// Traffic to a peer leaves on the overlay or is dropped. A gateway's own UDP packets carry the tunnel, whose
		// endpoint may be in the peer's ranges.
		{Name: guardChain, Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityGuard}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.SetMark(0), nft.Accept()},
			{nft.DAddrIn(SetPeers), nft.Jump("past-overlay")},
		}},
		{Name: "past-overlay", Rules: append(c.tunnels(), refusal)},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: priorityKeep}, Rules: []nft.Rule{
			// The overlay's own packets are not tracked and do not reach this chain. Packets that do were translated to
			// a gateway by a Service and would have the node's source address. Dropped packets create no connection, so
			// that the next packet reaches this chain too.
			{nft.UDPDPort(c.Overlay.Port), nft.DAddrIn(setGateways), nft.Counter(), nft.Drop()},
			{nft.OIfGroup(GroupOverlay), nft.SAddrIn(setPods), nft.SNATKeep()},
			{nft.OIfGroup(GroupOverlay), nft.SNAT(c.Internal)},
		}},
	}
}
