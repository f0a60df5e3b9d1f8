package netops_test

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// shared returns a state in which both gateways serve both peers.
func shared() netops.State {
	return change(func(s *netops.State) {
		s.Groups = []netops.NexthopGroup{{ID: netops.NexthopGroupBase + 1, Members: []uint32{netops.NexthopBase + 1, netops.NexthopBase + 2}}}
		s.Routes[0].Nexthop, s.Routes[2].Nexthop = netops.NexthopGroupBase+1, netops.NexthopGroupBase+1
	})
}

// ofOneGateway returns shared without the second gateway.
func ofOneGateway() netops.State {
	s := shared()
	s.Neighbours, s.Nexthops, s.Groups[0].Members = s.Neighbours[:1], s.Nexthops[:1], s.Groups[0].Members[:1]
	return s
}

// change returns a modified copy of nodeLike.
func change(edit func(*netops.State)) netops.State {
	s := topology.NodeLike()
	edit(&s)
	return s
}

func TestPlans(t *testing.T) {
	tunnel := func(forwarding bool) netops.State {
		return netops.State{Links: []netops.Link{{Name: netops.Tunnel, Kind: netops.KindDevice, MTU: 1420, Forwarding: forwarding}}}
	}
	tests := map[string]struct{ have, want netops.State }{
		"create":      {netops.State{}, topology.NodeLike()},
		"remove":      {topology.NodeLike(), netops.State{}},
		"peer-leaves": {topology.NodeLike(), change(withoutPeerB)},
		"peer-joins":  {change(withoutPeerB), topology.NodeLike()},
		"gateway-moves": {topology.NodeLike(), change(func(s *netops.State) {
			s.Nexthops[0] = topology.GatewayA("10.244.2.9")
		})},
		"link-mtu":  {topology.NodeLike(), change(func(s *netops.State) { s.Links[0].MTU = 1400 })},
		"link-port": {topology.NodeLike(), change(func(s *netops.State) { s.Links[0].Port = 6092 })},
		"link-down": {change(func(s *netops.State) { s.Links[0].Down = true }), topology.NodeLike()},
		"link-group": {
			change(func(s *netops.State) {
				s.Links[0].Group = netops.GroupTunnel
				s.Links = append(s.Links, netops.Link{Name: "eth0", Kind: netops.KindDevice, Group: netops.GroupOverlay}, netops.Link{Name: "eth1", Kind: netops.KindDevice, Group: 7})
			}),
			change(func(s *netops.State) { s.Links = append(s.Links, netops.Link{Name: "eth0", Kind: netops.KindDevice}) }),
		},
		"link-absent":   {netops.State{}, tunnel(true)},
		"route-refuses": {topology.NodeLike(), change(func(s *netops.State) { s.Routes[0].Type, s.Routes[0].Nexthop = netops.Unreachable, 0 })},
		"address-moves": {topology.NodeLike(), change(func(s *netops.State) { s.Addresses[0].Prefix = netip.MustParsePrefix("10.80.0.2/32") })},
		"local-moves":   {netops.State{}, netops.State{LocalRuleMoved: true, Rules: []netops.Rule{{Priority: 50, IIf: netops.Overlay, Table: netops.ToPeer}}}},
		"local-returns": {netops.State{LocalRuleMoved: true, Rules: []netops.Rule{{Priority: netops.LocalPriority, Table: netops.LocalTable}}}, netops.State{}},
		"group-created": {topology.NodeLike(), shared()},
		"group-removed": {shared(), topology.NodeLike()},
		"member-joins":  {ofOneGateway(), shared()},
		"member-leaves": {shared(), ofOneGateway()},
		"link-of-group": {shared(), func() netops.State { s := shared(); s.Links[0].Port = 6092; return s }()},
		"last-address-goes": {
			change(func(s *netops.State) { s.Routes = append(s.Routes, onOverlay) }),
			change(func(s *netops.State) { s.Routes, s.Addresses = append(s.Routes, onOverlay), nil }),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.have.Firewall, test.want.Firewall = nft.Table{}, nft.Table{} // package nft tests its text
			golden.Check(t, name+".golden", netops.Diff(test.have, test.want).String())
		})
	}
}

// onOverlay is a route with a link instead of a nexthop.
var onOverlay = netops.Route{Table: netops.MainTable, Dst: netip.MustParsePrefix("10.80.3.0/24"), Type: netops.Unicast, Link: netops.Overlay}

func withoutPeerB(s *netops.State) {
	s.Neighbours, s.Nexthops, s.Routes = s.Neighbours[:1], s.Nexthops[:1], s.Routes[:2]
}

func TestUnsetMatchesAnything(t *testing.T) {
	have := netops.State{Links: []netops.Link{
		{Name: netops.Overlay, Kind: netops.KindGeneve, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1450, Port: 6091, Forwarding: true},
		{Name: "eth0", Kind: netops.KindDevice, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, MTU: 9000, Forwarding: true, LinkLocal: true},
		{Name: "veth1", Kind: netops.KindDevice, Down: true},
	}}
	want := netops.State{
		Links: []netops.Link{{Name: netops.Overlay, Kind: netops.KindGeneve, Port: 6091}, {Name: "eth0", Kind: netops.KindDevice}},
		Rules: []netops.Rule{{Priority: 1, From: netip.MustParsePrefix("0.0.0.0/0"), To: netip.MustParsePrefix("10.1.2.3/16")}},
	}
	have.Rules = []netops.Rule{{Priority: 1, To: netip.MustParsePrefix("10.1.0.0/16")}}
	if p := netops.Diff(have, want); !p.Empty() {
		t.Errorf("a state without wishes makes a plan:\n%s", p)
	}
}

func TestOrderOfListsDoesNotMatter(t *testing.T) {
	shuffled := topology.NodeLike()
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(shuffled.Routes), func(i, j int) {
		shuffled.Routes[i], shuffled.Routes[j] = shuffled.Routes[j], shuffled.Routes[i]
	})
	slices.Reverse(shuffled.Rules)
	slices.Reverse(shuffled.Nexthops)
	if p := netops.Diff(topology.NodeLike(), shuffled); !p.Empty() {
		t.Errorf("the same state makes a plan:\n%s", p)
	}
	if diff := cmp.Diff(netops.Diff(netops.State{}, topology.NodeLike()).String(), netops.Diff(netops.State{}, shuffled).String()); diff != "" {
		t.Errorf("plans of the same states differ:\n%s", diff)
	}
}

// TestGuard: the steps of the guard are the first steps of a creation and the last steps of a removal.
func TestGuard(t *testing.T) {
	isGuard := func(s netops.Step) bool {
		route, isRoute := s.Object.(netops.Route)
		_, isFirewall := s.Object.(netops.Firewall)
		return isFirewall || isRoute && route.Refuses()
	}
	creation := netops.Diff(netops.State{}, topology.NodeLike()).Steps
	if n := slices.IndexFunc(creation, func(s netops.Step) bool { return !isGuard(s) }); n != 3 {
		t.Errorf("creation begins with %d steps of the guard, want 2 routes and the firewall:\n%s", n, netops.Plan{creation})
	}
	removal := netops.Diff(topology.NodeLike(), netops.State{}).Steps
	slices.Reverse(removal)
	if n := slices.IndexFunc(removal, func(s netops.Step) bool { return !isGuard(s) }); n != 3 {
		t.Errorf("removal ends with %d steps of the guard, want 2 routes and the firewall:\n%s", n, netops.Plan{removal})
	}
}
