package netops

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/echo"
)

// EchoPort is the UDP port at which nodes and gateways answer echoes, on internal and tunnel addresses only.
const EchoPort = echo.Port

// guardMetric gives the guard's unreachable routes the lowest preference among routes to the same range.
const guardMetric = 1 << 30

// Rule priorities on a node: after Cilium's local rule (100), before Cilium's own (110) and those of AWS (from 512).
const (
	priorityExempt  = 103
	priorityReverse = 103
	PriorityNode    = 104
)

// MarkArrival marks packets from gateways until they are routed, if a peer has several gateways, and packets with which
// a node verifies its path by each gateway. Only the reverse path filter and the routes of these packets depend on it.
// kube-proxy and network plugins do not use its bits.
const MarkArrival = 0x4c

// Table numbers of the kernel.
const (
	MainTable  = 254
	LocalTable = 255
)

// OverlayConfig has the common settings of the overlay links of nodes and gateways.
type OverlayConfig struct {
	Kind LinkKind
	Port uint16 // UDP
	MTU  int    // bytes, of the inner packets
}

// NodeConfig is the input for the state of a node in one address family. The families differ in addresses alone;
// addresses outside the overlay are IPv4.
type NodeConfig struct {
	Overlay      OverlayConfig
	Internal     netip.Addr     // this node's overlay address
	InternalCIDR netip.Prefix   // of the cluster
	Pods         []netip.Prefix // CIDRs and single addresses of this node's own pods
	Peers        []NodePeer
	HeldBack     []netip.Prefix // further ranges of peers without a route: guard only
	// PassForward adds rules that accept the overlay's packets to foreign chains that drop forwarded packets.
	PassForward bool
}

// NodePeer is a peer in the configuration of a node.
type NodePeer struct {
	Name     string         // in names of its chains: letters, digits and "-"
	CIDRs    []netip.Prefix // by which this cluster reaches the peer's pods, nodes and hosts
	Nodes    netip.Prefix   // part of CIDRs for the peer's nodes; echoes come from these only
	Gateways []NodeGateway  // of this cluster, to the peer; without a known gateway pod, traffic is blocked
	MTU      int            // bytes: largest packet that fits the whole path

	// Endpoints are the underlay addresses of the peer's gateway, both observed and configured; none: not known.
	Endpoints []netip.Addr
}

// NodeGateway is a gateway of this cluster in the configuration of a node.
type NodeGateway struct {
	Internal netip.Addr // its overlay address
	Pod      netip.Addr // address of its pod; the zero value: not known
	VNI      uint32
	Local    bool // its pod runs on this node
	Used     bool // for packets to the peer, evenly distributed over all used gateways; if none is used, all are
}

// reachable returns the gateways whose pod is known. Nodes exchange packets with all of them, used or not.
func (p NodePeer) reachable() []NodeGateway {
	return Only(p.Gateways, func(g NodeGateway) bool { return g.Pod.IsValid() })
}

// NodeState returns the desired state of the host namespace of a node, from its configuration for each address family;
// see joined. It has an overlay link for each gateway, so that the link identifies the gateway of a packet and eBPF
// programs can look up routes (bpf_fib_lookup does not support nexthops with encapsulation). The links have no address:
// Cilium treats each link with an address and a route as a network card of the node and lowers the node's MTU to its
// MTU. The node's internal address is on the loopback device.
func NodeState(families ...NodeConfig) State {
	return joined(families, NodeConfig.shared, NodeConfig.paths)
}

// shared returns the links to gateways and the packet filter.
func (c NodeConfig) shared() State {
	s := State{Firewall: c.firewall(), Firewall6: firewall6(c.Overlay.Port), PassForward: c.PassForward}
	for _, p := range c.Peers {
		gateways := p.reachable()
		for _, g := range gateways {
			link := c.Overlay.link(NodeLink(g.VNI), c.Internal)
			link.VNI, link.Remote, link.MarkedPath = g.VNI, g.Pod, len(gateways) > 1
			s.Links = append(s.Links, link)
		}
	}
	return s
}

// paths returns the paths to peers and their guard.
func (c NodeConfig) paths() State {
	s := State{
		Addresses: []Address{{Link: Loopback, Prefix: cidr.Single(c.Internal)}},
		Routes:    []Route{GuardRoute(RoutingTable, c.InternalCIDR)},
		Rules:     []Rule{{Priority: PriorityNode, Table: RoutingTable}},
	}
	for _, held := range c.HeldBack {
		s.Routes = append(s.Routes, GuardRoute(RoutingTable, held))
	}
	taken := c.PeerCIDRs()
	for _, p := range c.Peers {
		for _, seen := range p.CIDRs {
			s.Routes = append(s.Routes, GuardRoute(RoutingTable, seen))
		}
		c.addPeer(&s, p)
		for _, g := range p.reachable() {
			for _, endpoint := range p.captured(taken) {
				s.Rules = append(s.Rules, Rule{Priority: priorityExempt, From: cidr.Single(g.Pod), To: endpoint, Table: MainTable})
			}
		}
	}
	if c.several() {
		s.Rules = append(s.Rules, Rule{Priority: priorityReverse, Mark: MarkArrival, Table: ReverseTable})
	}
	return s
}

// addPeer adds nexthops and routes to a peer and to each of its gateways.
//
// Packets from a peer arrive from any of its gateways. The reverse path filter drops packets from a link without a
// reverse route, in strict mode, and also in loose mode because overlay links have no address (__fib_validate_source in
// net/ipv4/fib_frontend.c). It looks up the routes of ReverseTable, over all gateways, by a mark of the packet. If
// net.ipv4.fwmark_reflect is set, ICMP errors of the node have the mark and these routes as well.
func (c NodeConfig) addPeer(s *State, p NodePeer) {
	gateways := p.reachable()
	if len(gateways) == 0 {
		return
	}
	several := len(gateways) > 1
	nexthop := func(g NodeGateway) uint32 { return NexthopID(c.InternalCIDR, g.Internal) }
	addRoute := func(table int, dst netip.Prefix, id uint32) {
		s.Routes = append(s.Routes, Route{Table: table, Dst: dst, Type: Unicast, Nexthop: id, Source: c.Internal, MTU: p.MTU})
	}
	for _, g := range gateways {
		link := NodeLink(g.VNI)
		s.Neighbours = append(s.Neighbours, Neighbour{Link: link, IP: g.Internal, MAC: OverlayMAC(g.Internal)})
		s.Nexthops = append(s.Nexthops, Nexthop{ID: nexthop(g), Link: link, Via: g.Internal})
		addRoute(RoutingTable, cidr.Single(g.Internal), nexthop(g))
	}
	first := nexthop(p.Gateways[0])
	used := newGroup(ofKind(NexthopGroupBase, first), gateways, nexthop, func(g NodeGateway) bool { return g.Used })
	all := newGroup(ofKind(nexthopArrival, first), gateways, nexthop, func(NodeGateway) bool { return true })
	s.Groups = append(s.Groups, used)
	if several {
		s.Groups = append(s.Groups, all)
	}
	for _, seen := range p.CIDRs {
		addRoute(RoutingTable, seen, used.ID)
		if several {
			addRoute(ReverseTable, seen, all.ID)
		}
	}
}

// several reports whether any peer has more than one gateway.
func (c NodeConfig) several() bool {
	return slices.ContainsFunc(c.Peers, func(p NodePeer) bool { return len(p.reachable()) > 1 })
}

// captured returns the endpoints of a peer that are in the ranges of any peer, for example if pods and nodes share a
// network. Packets to them would be routed as traffic to a peer; packets of the gateway itself must not be. The gateway
// reports its own address and the observed endpoint of its peer. Its report exempts only packets to these addresses,
// not all packets of the pod.
func (p NodePeer) captured(taken []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, endpoint := range p.Endpoints {
		if cidr.Contains(taken, endpoint) {
			all = append(all, cidr.Single(endpoint))
		}
	}
	return cidr.Outermost(all)
}

// PeerCIDRs returns the CIDRs of all peers.
func (c NodeConfig) PeerCIDRs() []netip.Prefix {
	all := slices.Clone(c.HeldBack)
	for _, p := range c.Peers {
		all = append(all, p.CIDRs...)
	}
	return cidr.Outermost(all)
}

// NodeLink returns the name of a node's link to the gateway with that VNI.
func NodeLink(vni uint32) string { return fmt.Sprintf("%sgw%d", Prefix, vni) }

func (o OverlayConfig) link(name string, internal netip.Addr) Link {
	return Link{Name: name, Kind: o.Kind, MAC: OverlayMAC(internal), MTU: o.MTU, Port: o.Port, Group: GroupOverlay, Forwarding: true}
}

// OverlayMAC returns the MAC address of an overlay end: locally administered, from the last 32 bits of its internal
// address, which are the same in each address family. MAC addresses must be unique, because the drivers drop frames
// with their own.
func OverlayMAC(internal netip.Addr) net.HardwareAddr {
	return binary.BigEndian.AppendUint32([]byte{0x02, 0x4c}, lastBits(internal))
}

// GuardRoute returns the route that rejects packets to a peer's CIDR which no other route takes.
func GuardRoute(table int, dst netip.Prefix) Route {
	return Route{Table: table, Dst: dst, Type: Unreachable, Metric: guardMetric}
}
