package netops

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/echo"
)

// EchoPort is the UDP port at which nodes and gateways answer echoes, on internal and tunnel addresses only.
const EchoPort = echo.Port

// guardMetric makes the guard's unreachable routes lose against every other route to the same range.
const guardMetric = 1 << 30

// Rule priorities on a node: after Cilium's local rule (100), before its own (110) and AWS's (512 and up).
const (
	priorityExempt  = 103
	priorityReverse = 103
	priorityNode    = 104
)

// markArrival is on packets from gateways until they are routed, where a peer has several gateways, and on those by
// which a node proves its path by each of them. Only the reverse path filter takes a decision by it, and the choice of
// their route. Its bits are none of those that kube-proxy and network plugins use.
const markArrival = 0x4c

// Numbers of the kernel.
const (
	mainTable  = 254
	localTable = 255
)

// OverlayConfig is what the overlay links of nodes and gateways have in common.
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
	// Chains of others that drop forwarded packets get rules that let those of the overlay pass.
	PassForward bool
}

// NodePeer is one peer as a node sees it.
type NodePeer struct {
	Name     string         // of its chains: letters, digits and "-"
	CIDRs    []netip.Prefix // by which the peer's pods, nodes and hosts are reached from here
	Nodes    netip.Prefix   // of them, where its nodes are; they alone may send echoes
	Gateways []NodeGateway  // of this cluster, to the peer; while the pod of none is known, traffic is held back
	MTU      int            // bytes, of the largest packet that travels the whole path

	// Endpoints are where the peer's gateway is heard on the underlay, and looked for; none: not known.
	Endpoints []netip.Addr
}

// NodeGateway is a gateway of this cluster as a node sees it.
type NodeGateway struct {
	Internal netip.Addr // its end of the overlay
	Pod      netip.Addr // address of its pod; the zero value: not known
	VNI      uint32
	Local    bool // its pod runs on this node
	Used     bool // carries packets for the peer. Those of a peer share them evenly; where none is used, all do.
}

// reached are the gateways whose pod is known. Nodes exchange packets with each, whether it is used or not.
func (p NodePeer) reached() []NodeGateway {
	return only(p.Gateways, func(g NodeGateway) bool { return g.Pod.IsValid() })
}

// NodeState returns the state of the host namespace of a node: an overlay link for each gateway, so that the link tells
// which gateway sent a packet, and eBPF programs can look its routes up (bpf_fib_lookup follows no encapsulation of a
// nexthop). The links have no address: Cilium takes every link with an address and a route for a network card of the
// node and lowers the node's MTU to fit it. The node's internal address is on the loopback device.
func NodeState(c NodeConfig) State {
	s := State{
		Addresses: []Address{{Link: loopback, Prefix: cidr.Single(c.Internal)}},
		Routes:    []Route{guardRoute(RoutingTable, c.InternalCIDR)},
		Rules:     []Rule{{Priority: priorityNode, Table: RoutingTable}},
		Firewall:  c.firewall(),
		Firewall6: firewall6(c.Overlay.Port),

		PassForward: c.PassForward,
	}
	for _, held := range c.HeldBack {
		s.Routes = append(s.Routes, guardRoute(RoutingTable, held))
	}
	taken := c.peerCIDRs()
	for _, p := range c.Peers {
		for _, seen := range p.CIDRs {
			s.Routes = append(s.Routes, guardRoute(RoutingTable, seen))
		}
		c.reach(&s, p)
		for _, g := range p.reached() {
			for _, endpoint := range p.captured(taken) {
				s.Rules = append(s.Rules, Rule{Priority: priorityExempt, From: cidr.Single(g.Pod), To: endpoint, Table: mainTable})
			}
		}
	}
	if c.several() {
		s.Rules = append(s.Rules, Rule{Priority: priorityReverse, Mark: markArrival, Table: ReverseTable})
	}
	return s
}

// reach adds what leads to a peer by its gateways, and to each of these.
//
// A peer's packets come by any of them. The reverse path filter drops what comes by a link that no route back leads to,
// if it is strict, and also if it is loose, because overlay links have no address (__fib_validate_source in
// net/ipv4/fib_frontend.c). For the filter there are routes by all gateways, which it looks up by a mark of the packet.
// Where net.ipv4.fwmark_reflect is set, the node's ICMP errors bear the mark as well and take these routes.
func (c NodeConfig) reach(s *State, p NodePeer) {
	gateways := p.reached()
	if len(gateways) == 0 {
		return
	}
	several := len(gateways) > 1
	nexthop := func(g NodeGateway) uint32 { return NexthopID(c.InternalCIDR, g.Internal) }
	lead := func(table int, dst netip.Prefix, id uint32) {
		s.Routes = append(s.Routes, Route{Table: table, Dst: dst, Type: Unicast, Nexthop: id, Source: c.Internal, MTU: p.MTU})
	}
	for _, g := range gateways {
		link := c.Overlay.link(NodeLink(g.VNI), c.Internal)
		link.VNI, link.Remote, link.MarkedPath = g.VNI, g.Pod, several
		s.Links = append(s.Links, link)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: link.Name, IP: g.Internal, MAC: overlayMAC(g.Internal)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: nexthop(g), Link: link.Name, Via: g.Internal})
		lead(RoutingTable, cidr.Single(g.Internal), nexthop(g))
	}
	first := nexthop(p.Gateways[0])
	used := newGroup(ofKind(nexthopGroup, first), gateways, nexthop, func(g NodeGateway) bool { return g.Used })
	all := newGroup(ofKind(nexthopArrival, first), gateways, nexthop, func(NodeGateway) bool { return true })
	s.Groups = append(s.Groups, used)
	if several {
		s.Groups = append(s.Groups, all)
	}
	for _, seen := range p.CIDRs {
		lead(RoutingTable, seen, used.ID)
		if several {
			lead(ReverseTable, seen, all.ID)
		}
	}
}

// several reports whether any peer has more than one gateway.
func (c NodeConfig) several() bool {
	return slices.ContainsFunc(c.Peers, func(p NodePeer) bool { return len(p.reached()) > 1 })
}

// captured are those of a peer's endpoints that are among all peers' ranges, so that packets to them would be taken for
// traffic to a peer, as where pods and nodes share a network. The gateway's own packets must not be. It is the gateway
// that says where it is and where it hears its peer: what it says exempts packets to these addresses, and never all
// that a pod sends.
func (p NodePeer) captured(taken []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, endpoint := range p.Endpoints {
		if cidr.Contains(taken, endpoint) {
			all = append(all, cidr.Single(endpoint))
		}
	}
	return cidr.Outermost(all)
}

func (c NodeConfig) peerCIDRs() []netip.Prefix {
	all := slices.Clone(c.HeldBack)
	for _, p := range c.Peers {
		all = append(all, p.CIDRs...)
	}
	return cidr.Outermost(all)
}

// NodeLink is the name of a node's link to the gateway of a virtual network.
func NodeLink(vni uint32) string { return fmt.Sprintf("%sgw%d", Prefix, vni) }

func (o OverlayConfig) link(name string, internal netip.Addr) Link {
	return Link{Name: name, Kind: o.Kind, MAC: overlayMAC(internal), MTU: o.MTU, Port: o.Port, Group: GroupOverlay, Forwarding: true}
}

// overlayMAC is the MAC address of an end of the overlay: locally administered, from its internal address.
// Ends must differ: the drivers drop a frame that bears their own.
func overlayMAC(internal netip.Addr) net.HardwareAddr {
	a := internal.As4()
	return net.HardwareAddr{0x02, 0x4c, a[0], a[1], a[2], a[3]}
}

func guardRoute(table int, dst netip.Prefix) Route {
	return Route{Table: table, Dst: dst, Type: Unreachable, Metric: guardMetric}
}
