// Package netops brings the kernel state of one network namespace to a desired state: links, addresses, neighbours,
// nexthops and nexthop groups, routes, rules, an nftables table for IPv4 and one for IPv6. It observes the state,
// computes a plan and applies it:
//
//	want := netops.NodeState(cfg)   // or GatewayState: pure
//	have, err := kernel.Observe()   // reads what is ours
//	plan := netops.Diff(have, want) // pure, sorted
//	err = kernel.Apply(plan)
//
// Our objects are marked in the kernel (Prefix, Protocol, Table, the bands below), so that no state is kept elsewhere.
// The package does not depend on Kubernetes or on peerings. It carries IPv4; IPv6 packets on our links are dropped.
package netops

import (
	"net"
	"net/netip"

	"liqonet.io/liqonet/netops/nft"
)

// Marks of ownership in the kernel.
const (
	Prefix   = "lqn-"        // of all interface names
	Overlay  = "lqn-overlay" // of a gateway; a node has a link for each gateway, see NodeLink
	Tunnel   = "lqn-tunnel"
	Protocol = 76 // rtnetlink protocol number of routes, rules and nexthops
	Table    = "liqonet"

	// NexthopBase is the first nexthop id of our band, NexthopMask the common bits of its ids. nexthop.go defines the
	// ids.
	NexthopBase = 0x4c000000
	NexthopMask = 0xfc000000

	// RoutingTable is the table of a node. A gateway has the next two tables, by direction. ReverseTable is for the
	// reverse path filter of a node. Carried leads a tunnel's own packets to this gateway's process.
	RoutingTable = 7600
	ToPeer       = 7601
	FromPeer     = 7602
	ReverseTable = 7603
	Carried      = 7604

	// GroupOverlay and GroupTunnel are the groups of our links. Firewall rules match the group number instead of the
	// name, which would be a comparison of 16 bytes per packet and rule. No other link may be in these groups.
	GroupOverlay = 0x4c01
	GroupTunnel  = 0x4c02

	// LocalPriority is the priority of the rule for the kernel's local table after it was moved.
	LocalPriority = 100
)

// State is the observed or desired state of a network namespace. The zero value has no objects of ours.
type State struct {
	Links      []Link
	Addresses  []Address
	Neighbours []Neighbour
	Nexthops   []Nexthop
	Groups     []NexthopGroup
	Routes     []Route
	Rules      []Rule
	Firewall   nft.Table
	Firewall6  nft.Table // of family ip6: drops all packets

	// ForwardChains are foreign chains that forwarded packets traverse (observed only). PassForward adds rules that
	// accept the overlay's packets to those that drop by default.
	ForwardChains []nft.ForwardChain
	PassForward   bool

	// LocalRuleMoved means that the rule "from all lookup local" is ours at LocalPriority instead of the kernel's at
	// priority 0, so that other rules precede it. Rules does not include it.
	LocalRuleMoved bool
}

// Link is an interface. KindDevice is an interface that another program creates (the tunnel, a pod's eth0): it is
// configured when it exists, and never created or deleted here. An observed State also has all foreign links of the
// namespace as devices, from which Diff knows the existing devices. Desired links are set up.
type Link struct {
	Name       string
	Kind       LinkKind
	MAC        net.HardwareAddr // nil: unchanged
	MTU        int              // bytes; 0: unchanged
	Port       uint16           // UDP port of the overlay
	VNI        uint32           // VNI of an overlay with one remote end; 0: set per packet
	Remote     netip.Addr       // underlay address of the remote end
	Group      uint32           // link group; 0: unchanged, but not one of ours
	Forwarding bool             // forwards IPv4; false: unchanged
	MarkedPath bool             // the reverse path filter uses marks (src_valid_mark); false: unchanged
	// LoosePath sets the reverse path filter to loose (rp_filter 2), also if that of all links is strict; false:
	// unchanged.
	LoosePath bool

	Down      bool // observed only: not set up
	LinkLocal bool // observed only: the kernel assigns an IPv6 address to the link
	ARP       bool // observed only: uses ARP, which overlays do not need
}

// ForeignMember is a foreign link in one of our groups. It can only be removed.
type ForeignMember struct {
	Link  string
	Group uint32
}

// LinkKind is the kind of a link.
type LinkKind string

// The kinds of links. An overlay without a VNI is in collect-metadata mode, and then also opens an IPv6 socket
// (vxlan_sock_add in drivers/net/vxlan/vxlan_core.c, geneve_open in drivers/net/geneve.c).
const (
	KindVXLAN  LinkKind = "vxlan"
	KindGeneve LinkKind = "geneve"
	KindDevice LinkKind = "device"
)

// Address is an address of a link. On the loopback device it has scope host and the label addressLabel.
type Address struct {
	Link   string
	Prefix netip.Prefix // with host bits
}

// Neighbour is a permanent neighbour entry.
type Neighbour struct {
	Link string
	IP   netip.Addr
	MAC  net.HardwareAddr
}

// Nexthop is a nexthop object on an overlay link or a tunnel. On an overlay link in collect-metadata mode, VNI and Dst
// are the encapsulation of its packets; otherwise they are unset.
type Nexthop struct {
	ID   uint32
	Link string
	Via  netip.Addr // internal address of the remote end, onlink; zero value: none, on a tunnel
	VNI  uint32
	Dst  netip.Addr // underlay address of the remote end
}

// NexthopGroup is a nexthop object that distributes flows evenly over its members. The kernel removes a deleted nexthop
// from its groups, and a group with its last member.
type NexthopGroup struct {
	ID      uint32
	Members []uint32 // ids of Nexthops, sorted; at least one
	Uneven  bool     // observed only: members have weights
}

// RouteType is the type of a route.
type RouteType string

// The types, as the kernel has them.
const (
	Unicast     RouteType = "unicast"
	Unreachable RouteType = "unreachable"
	Local       RouteType = "local" // to this host, by the loopback link

	Blackhole RouteType = "blackhole" // this and the following types: observed only
	Prohibit  RouteType = "prohibit"
	Throw     RouteType = "throw" // continues with the next rule
)

// Route is a route of ours. A unicast route has either a Nexthop or a Link, a local one a Link.
type Route struct {
	Table   int
	Dst     netip.Prefix
	Type    RouteType
	Nexthop uint32 // id of a Nexthop or NexthopGroup; 0: none
	Link    string
	Via     netip.Addr // zero value: none
	Source  netip.Addr // source address of packets from this host; zero value: the kernel chooses
	MTU     int        // bytes; 0: the link's
	Metric  int        // lower wins
}

// Rule is a routing policy rule. No rule may have all selectors of another rule of the same priority and table and
// more: the kernel deletes the first rule that has the given selectors, even if it has others.
type Rule struct {
	Priority int
	From, To netip.Prefix // zero value: any
	IIf      string       // "": any
	Mark     uint32       // 0: any
	Table    int

	Action string // observed only: action of a rule without a table, such as "blackhole"
}
