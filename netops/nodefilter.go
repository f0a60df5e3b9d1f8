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
	priorityPieces = -450 // before fragments are put together (-400)
	priorityRaw    = -300
	// priorityArrival is after conntrack (-200), so that answers are known, and before all that may lead a packet
	// elsewhere: mangle (-150), where packets are handed to proxies, and DNAT (-100).
	priorityArrival = -190
	priorityFilter  = -10
	// Masquerading begins at 90 (kindnet), 100 elsewhere.
	priorityGuard = 75
	priorityKeep  = 80
)

// Names of the sets of a node's table.
const (
	setPeers     = "peers"     // every peer's ranges, as this cluster reaches them
	setPods      = "pods"      // of this node
	setGateways  = "gateways"  // pods of gateways: the far ends of the overlay
	setLocal     = "local"     // those of them that run on this node
	setEndpoints = "endpoints" // of peers' tunnels, where they are among setPeers
)

// firewall is a node's nftables table.
func (c NodeConfig) firewall() nft.Table {
	var gateways, local, captured []netip.Prefix
	taken := c.peerCIDRs()
	for _, p := range c.Peers {
		for _, g := range p.reached() {
			gateways = append(gateways, cidr.Single(g.Pod))
			local = append(local, where(g.Local, cidr.Single(g.Pod))...)
			captured = append(captured, p.captured(taken)...)
		}
	}
	sets := []nft.Set{
		nft.NewSet(setPeers, taken...),
		nft.NewSet(setPods, c.Pods...),
		{Name: setGateways, Hosts: true, Elements: cidr.Outermost(gateways)},
		{Name: setLocal, Hosts: true, Elements: cidr.Outermost(local)},
		{Name: setEndpoints, Hosts: true, Elements: cidr.Outermost(captured)},
	}
	for _, p := range c.Peers { // a set each, which a peer that forges addresses can fill
		hears := len(p.reached()) > 0 && p.Nodes.IsValid()
		sets = append(sets, where(hears, nft.Set{Name: echoChain + p.Name, Senders: peerNodesMost, Timeout: time.Minute})...)
	}
	return nft.Table{
		Name:   Table,
		Sets:   sets,
		Chains: append(c.arrivals(), c.departures()...),
	}
}

// arrivals are the chains of what comes from gateways.
//
// The outer packet must come from the pod of the gateway whose network it names: VXLAN itself does not ask
// (vxlan_rcv in drivers/net/vxlan/vxlan_core.c). By that the link tells which gateway sent the inner packet, and each
// peer has a chain with its ranges, to which the links of its gateways lead, used or not. Links are known by name here,
// whatever their group: a link out of its group is checked all the same.
//
// What is for a pod or for the node is decided before anything translates a destination. A Service's NodePort, external
// address or a hostPort would else lead a peer's packet past the rule that it may reach pods only, and past the network
// policies of the pod behind. Answers are what goes the other way than the first packet of a connection: one that
// somebody else began in the peer's name is established, too.
//
// Fragments are judged by their addresses before they are put together: the kernel asks of none by which link it came
// (ip_frag_queue in net/ipv4/ip_fragment.c), and takes the whole for what came by the link of the last.
func (c NodeConfig) arrivals() []nft.Chain {
	overlay, self := nft.UDPDPort(c.Overlay.Port), nft.DAddr(cidr.Single(c.Internal))
	var outer, forged, pieces []nft.Rule
	// A source route, where this node obeys it, would lead a packet on that came for one of the node's own addresses.
	inner := []nft.Rule{{nft.Options(), nft.Counter(), nft.Drop()}}
	// A mark of the outer packet survives decapsulation: by it Cilium would take the peer's packets for the gateway
	// pod's.
	mark := uint32(0)
	if c.several() {
		mark = markArrival
	}
	inner = append(inner, nft.Rule{nft.SetMark(mark)})
	var chains []nft.Chain
	for _, p := range c.Peers {
		for _, g := range p.reached() {
			outer = append(outer, nft.Rule{nft.SAddr(cidr.Single(g.Pod)), nft.OverlayID(g.VNI), nft.Accept()})
			forged = append(forged, nft.Rule{nft.SAddrIn(setPods), nft.OverlayID(g.VNI), nft.Counter(), nft.Drop()})
			inner = append(inner, nft.Rule{nft.IIf(NodeLink(g.VNI)), nft.Goto(arrivalChain + p.Name)})
			pieces = append(pieces, nft.Rule{nft.IIf(NodeLink(g.VNI)), nft.Goto(pieceChain + p.Name)})
		}
		if len(p.reached()) > 0 {
			chains = append(chains, p.arrivals(self)...)
		}
	}
	return slices.Concat(chains, c.destinations(self), []nft.Chain{
		// Pods of this node that are no gateways send nothing in a gateway's network. A node that is cut off from the
		// API server takes it from the pod that has got the address of a gateway that was replaced.
		{Name: "untracked", Rules: append(append([]nft.Rule{
			{nft.SAddrIn(setGateways), nft.NoTrack(), nft.Accept()},
		}, forged...), nft.Rule{nft.DAddrIn(setGateways), nft.NoTrack()})},
		{Name: "outer", Rules: append(outer, refusal)},
		{Name: "inner", Rules: append(inner, refusal)},
		{Name: "pieces", Rules: append(pieces, []nft.Rule{
			{nft.IIfPrefix(Prefix), nft.Counter(), nft.Drop()},
			{nft.SAddrIn(setEndpoints), nft.Accept()}, // of the tunnel
			{nft.SAddrIn(setPeers), nft.Counter(), nft.Drop()},
		}...)},
		{Name: "fragments", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityPieces}, Rules: []nft.Rule{
			{nft.Fragment(), nft.Goto("pieces")},
		}},
		// No rule of a CNI or of kube-proxy translates the overlay's own packets.
		{Name: "overlay-in", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: []nft.Rule{
			{overlay, nft.Goto("untracked")}, // the one rule that all other packets meet here
		}},
		{Name: "arrival", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityArrival}, Rules: []nft.Rule{
			{nft.IIfPrefix(Prefix), nft.Goto("inner")},
		}},
		{Name: "input", Hook: &nft.Hook{Type: "filter", Point: "input", Priority: priorityFilter}, Rules: []nft.Rule{
			{overlay, nft.Goto("outer")},
			{nft.IIfPrefix(Prefix), nft.Goto("into-node")},
			// Who is no gateway has nothing to say to the node's end of the overlay, which answers echoes.
			{self, nft.IIfNot(loopback), nft.Counter(), nft.Drop()},
		}},
		{Name: "forward", Hook: &nft.Hook{Type: "filter", Point: "forward", Priority: priorityFilter}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.Goto("into-overlay")},
			{nft.IIfPrefix(Prefix), nft.Goto("out-of-overlay")},
		}},
	})
}

// destinations are the chains of what a peer sends to pods and to the node itself.
func (c NodeConfig) destinations(self nft.Expr) []nft.Chain {
	routed := where(c.several(), nft.Rule{nft.Mark(markArrival), nft.SetMark(0)})
	return []nft.Chain{
		{Name: "to-pods", Rules: []nft.Rule{
			// No peer reaches a gateway's pod. Only this node's: another node reports what it likes of its own, for
			// instance an address of a pod that runs here.
			{nft.DAddrIn(setLocal), nft.Counter(), nft.Drop()},
			{nft.DAddrIn(setPods), nft.Accept()},
			{nft.Goto("to-node")},
		}},
		{Name: "to-node", Rules: []nft.Rule{
			{self, nft.CTState(nft.Established, nft.Related), nft.CTDirection(nft.Reply), nft.Accept()},
			{self, nft.ICMPType(icmpRequest), nft.Accept()},
			refusal,
		}},
		// After all translation: addresses of the node are among its pods' ranges, too.
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

// guardChain keeps what is for peers from leaving by anything but the overlay.
const guardChain = "guard"

// Names of the chains of a peer, before its own.
const (
	arrivalChain = "from-"
	echoChain    = "echo-"
	pieceChain   = "pieces-"
	quotedChain  = "quoted-"
)

// Echoes that a node takes of one peer's gateway, of each of the peer's nodes, and of all these, in a second and at
// once. A peer of 1,000 nodes, which share eight of this cluster's, sends 60; each node sends four if the peer has
// eight gateways.
const (
	gatewayEchoRate = 200
	peerNodeRate    = 10
	peerNodeBurst   = 40
	peerEchoRate    = 200
	peerNodesMost   = 1 << 12 // that have a limit of their own
)

// arrivals are the chains of what comes from the peer's gateways: by its internal address from itself, else from the
// peer. Echoes come before established connections: whom this node asks could else send without bounds. Errors are
// about packets to the peer: its gateways could else end connections with others, or make their packets small.
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
	for _, g := range p.reached() {
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

// tunnels let a gateway's packets pass to the captured endpoints of its own peering.
func (c NodeConfig) tunnels() (rules []nft.Rule) {
	taken := c.peerCIDRs()
	for _, p := range c.Peers {
		for _, g := range p.reached() {
			for _, endpoint := range p.captured(taken) {
				rules = append(rules, nft.Rule{nft.SAddr(cidr.Single(g.Pod)), nft.DAddr(endpoint), nft.Protocol(nft.UDP), nft.Accept()})
			}
		}
	}
	return rules
}

// departures are the chains of what goes to peers. Order on the postrouting hook: guard, then the mark is cleared, then
// the source is bound before any CNI's masquerade: a binding ends the kernel's search for one, an accept does not.
func (c NodeConfig) departures() []nft.Chain {
	return []nft.Chain{
		{Name: "overlay-out", Hook: &nft.Hook{Type: "filter", Point: "output", Priority: priorityRaw}, Rules: []nft.Rule{
			{nft.UDPDPort(c.Overlay.Port), nft.DAddrIn(setGateways), nft.NoTrack()},
		}},
		// Of what the node forwards, peers get what this node's pods send and what the node translated, as for a
		// Service. For others the node is no router: they would get to the peer under the node's address.
		{Name: "into-overlay", Rules: []nft.Rule{
			{nft.SAddrIn(setPods), nft.Accept()},
			{nft.CTTranslated(), nft.Accept()},
			refusal,
		}},
		// Traffic for a peer leaves by the overlay or not at all; a gateway's own packets carry the tunnel, in UDP,
		// whose other end may have an address of the peer's.
		{Name: guardChain, Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityGuard}, Rules: []nft.Rule{
			{nft.OIfGroup(GroupOverlay), nft.SetMark(0), nft.Accept()},
			{nft.DAddrIn(setPeers), nft.Jump("past-overlay")},
		}},
		{Name: "past-overlay", Rules: append(c.tunnels(), refusal)},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: priorityKeep}, Rules: []nft.Rule{
			// The overlay's own packets are not tracked and do not come by here. What does was led to a gateway by a
			// Service, and would get there as the node's. Dropped, it leaves no connection: the next packet comes by
			// here, too.
			{nft.UDPDPort(c.Overlay.Port), nft.DAddrIn(setGateways), nft.Counter(), nft.Drop()},
			{nft.OIfGroup(GroupOverlay), nft.SAddrIn(setPods), nft.SNATKeep()},
			{nft.OIfGroup(GroupOverlay), nft.SNAT(c.Internal)},
		}},
	}
}
