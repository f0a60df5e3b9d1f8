// Package netops brings the kernel of one network namespace into a wanted state: links, addresses, neighbours,
// nexthops and groups of them, routes, rules, an nftables table for IPv4 and one for IPv6. It works as state in, plan,
// apply:
//
//	want := netops.NodeState(cfg)   // or GatewayState: pure
//	have, err := kernel.Observe()   // reads what is ours
//	plan := netops.Diff(have, want) // pure, sorted
//	err = kernel.Apply(plan)
//
// What is ours is marked so in the kernel (Prefix, Protocol, Table, the bands below): nothing is remembered.
// The package knows no Kubernetes and no peering. It carries IPv4; what of IPv6 concerns our links is dropped.
package netops

import (
	"net"
	"net/netip"

	"liqonet.io/liqonet/netops/nft"
)

// Marks of ownership in the kernel.
const (
	Prefix   = "lqn-"        // of every interface name
	Overlay  = "lqn-overlay" // of a gateway; a node has a link for each gateway, see NodeLink
	Tunnel   = "lqn-tunnel"
	Protocol = 76 // rtnetlink protocol number of routes, rules and nexthops
	Table    = "liqonet"

	// NexthopBase is the first nexthop id of our band, NexthopMask the bits that all its ids share. nexthop.go
	// says which id is whose.
	NexthopBase = 0x4c000000
	NexthopMask = 0xfc000000

	// RoutingTable is a node's table; a gateway has the two after it, by direction. ReverseTable is for a node's
	// reverse path filter.
	RoutingTable = 7600
	ToPeer       = 7601
	FromPeer     = 7602
	ReverseTable = 7603

	// GroupOverlay and GroupTunnel are the groups of our links, by which rules know them: a comparison of numbers,
	// where names are 16 bytes that every packet would be asked for at every rule. No other link may be in them.
	GroupOverlay = 0x4c01
	GroupTunnel  = 0x4c02

	// LocalPriority is that of the rule for the kernel's local table, where it is moved.
	LocalPriority = 100
)

// State is what is, or is wanted, in a network namespace. The zero value is nothing of ours.
type State struct {
	Links      []Link
	Addresses  []Address
	Neighbours []Neighbour
	Nexthops   []Nexthop
	Groups     []NexthopGroup
	Routes     []Route
	Rules      []Rule
	Firewall   nft.Table
	Firewall6  nft.Table // of family ip6: nothing passes

	// ForwardChains are those of others that forwarded packets pass (observed only). PassForward wants rules in the
	// ones that drop what they do not know, which let the overlay's packets through.
	ForwardChains []nft.ForwardChain
	PassForward   bool

	// LocalRuleMoved says that the rule "from all lookup local" is ours at LocalPriority, no longer the kernel's at
	// priority 0, so that other rules see a packet first. It needs no mention in Rules.
	LocalRuleMoved bool
}

// Link is an interface. KindDevice stands for one that is made elsewhere (the tunnel, a pod's eth0): it is
// waited for, configured, and never created or deleted here. An observed State has every foreign link of the
// namespace as a device too: that is how Diff knows which wanted devices exist. A wanted link is set up.
type Link struct {
	Name       string
	Kind       LinkKind
	MAC        net.HardwareAddr // nil: leave alone
	MTU        int              // bytes; 0: leave alone
	Port       uint16           // UDP port of the overlay
	VNI        uint32           // virtual network of an overlay with one far end; 0: each packet bears its far end
	Remote     netip.Addr       // underlay address of that far end
	Group      uint32           // of links, of the whole namespace; 0: leave alone, but take the link out of ours
	Forwarding bool             // forwards IPv4; false: leave alone
	MarkedPath bool             // its reverse path filter looks at marks (src_valid_mark); false: leave alone
	// Its reverse path filter is loose (rp_filter 2), even if that of all links is strict; false: leave alone.
	LoosePath bool

	Down      bool // observed only: not set up
	LinkLocal bool // observed only: the kernel gives the link an IPv6 address of its own accord
	ARP       bool // observed only: it asks and answers ARP, which overlays need not
}

// Membership is that of a link in one of our groups in which it does not belong. It can only be removed.
type Membership struct {
	Link  string
	Group uint32
}

// LinkKind says what makes a link.
type LinkKind string

// The kinds of links. An overlay without a VNI is in collect-metadata mode, in which it opens an IPv6 socket as well
// (vxlan_sock_add in drivers/net/vxlan/vxlan_core.c, geneve_open in drivers/net/geneve.c).
const (
	KindVXLAN  LinkKind = "vxlan"
	KindGeneve LinkKind = "geneve"
	KindDevice LinkKind = "device"
)

// Address is an address of a link. One of the loopback device has scope host and bears addressLabel.
type Address struct {
	Link   string
	Prefix netip.Prefix // host bits are the address
}

// Neighbour is a permanent neighbour entry.
type Neighbour struct {
	Link string
	IP   netip.Addr
	MAC  net.HardwareAddr
}

// Nexthop is a nexthop object on an overlay link or a tunnel. On an overlay link in collect-metadata mode, VNI and Dst
// say how its packets are encapsulated; else they are unset.
type Nexthop struct {
	ID   uint32
	Link string
	Via  netip.Addr // internal address of the far end, onlink; zero value: none, on a tunnel
	VNI  uint32
	Dst  netip.Addr // underlay address of the far end
}

// NexthopGroup is a nexthop object that spreads flows evenly over its members. The kernel removes a nexthop that is
// deleted from its groups, and a group with its last member.
type NexthopGroup struct {
	ID      uint32
	Members []uint32 // ids of Nexthops, sorted; at least one
	Uneven  bool     // observed only: members have weights
}

// RouteType says what a route does with a packet.
type RouteType string

// The route types.
const (
	Unicast     RouteType = "unicast"
	Unreachable RouteType = "unreachable"

	Blackhole RouteType = "blackhole" // observed only, as what follows
	Prohibit  RouteType = "prohibit"
	Throw     RouteType = "throw" // the next rule decides
	Local     RouteType = "local"
)

// Route is a route of ours. A unicast route has either a Nexthop or a Link.
type Route struct {
	Table   int
	Dst     netip.Prefix
	Type    RouteType
	Nexthop uint32 // id of a Nexthop or NexthopGroup; 0: none
	Link    string
	Via     netip.Addr // zero value: none
	Source  netip.Addr // of packets that this host itself sends; zero value: the kernel chooses
	MTU     int        // bytes; 0: the link's
	Metric  int        // lower wins
}

// Rule is a routing policy rule. Among rules of one priority and table none may have all selectors of another
// and more: the kernel deletes the first rule that has the selectors named, whatever else that rule has.
type Rule struct {
	Priority int
	From, To netip.Prefix // zero value: any
	IIf      string       // "": any
	Mark     uint32       // 0: any
	Table    int

	Action string // observed only: what a rule does that leads to no table, such as "blackhole"
}
