package netops

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/netops/nft"
)

// shared returns a state in which both gateways serve both peers.
func shared() State {
	return change(func(s *State) {
		s.Groups = []NexthopGroup{{ID: nexthopGroup + 1, Members: []uint32{NexthopBase + 1, NexthopBase + 2}}}
		s.Routes[0].Nexthop, s.Routes[2].Nexthop = nexthopGroup+1, nexthopGroup+1
	})
}

// ofOneGateway returns shared without the second gateway.
func ofOneGateway() State {
	s := shared()
	s.Neighbours, s.Nexthops, s.Groups[0].Members = s.Neighbours[:1], s.Nexthops[:1], s.Groups[0].Members[:1]
	return s
}

// change returns a modified copy of nodeLike.
func change(edit func(*State)) State {
	s := nodeLike()
	edit(&s)
	return s
}

func TestPlans(t *testing.T) {
	tunnel := func(forwarding bool) State {
		return State{Links: []Link{{Name: Tunnel, Kind: KindDevice, MTU: 1420, Forwarding: forwarding}}}
	}
	tests := map[string]struct{ have, want State }{
		"create":      {State{}, nodeLike()},
		"remove":      {nodeLike(), State{}},
		"peer-leaves": {nodeLike(), change(withoutPeerB)},
		"peer-joins":  {change(withoutPeerB), nodeLike()},
		"gateway-moves": {nodeLike(), change(func(s *State) {
			s.Nexthops[0] = gatewayA("10.244.2.9")
		})},
		"link-mtu":  {nodeLike(), change(func(s *State) { s.Links[0].MTU = 1400 })},
		"link-port": {nodeLike(), change(func(s *State) { s.Links[0].Port = 6092 })},
		"link-down": {change(func(s *State) { s.Links[0].Down = true }), nodeLike()},
		"link-group": {
			change(func(s *State) {
				s.Links[0].Group = GroupTunnel
				s.Links = append(s.Links, Link{Name: "eth0", Kind: KindDevice, Group: GroupOverlay}, Link{Name: "eth1", Kind: KindDevice, Group: 7})
			}),
			change(func(s *State) { s.Links = append(s.Links, Link{Name: "eth0", Kind: KindDevice}) }),
		},
		"link-absent":   {State{}, tunnel(true)},
		"route-refuses": {nodeLike(), change(func(s *State) { s.Routes[0].Type, s.Routes[0].Nexthop = Unreachable, 0 })},
		"address-moves": {nodeLike(), change(func(s *State) { s.Addresses[0].Prefix = netip.MustParsePrefix("10.80.0.2/32") })},
		"local-moves":   {State{}, State{LocalRuleMoved: true, Rules: []Rule{{Priority: 50, IIf: Overlay, Table: ToPeer}}}},
		"local-returns": {State{LocalRuleMoved: true, Rules: []Rule{{Priority: LocalPriority, Table: localTable}}}, State{}},
		"group-created": {nodeLike(), shared()},
		"group-removed": {shared(), nodeLike()},
		"member-joins":  {ofOneGateway(), shared()},
		"member-leaves": {shared(), ofOneGateway()},
		"link-of-group": {shared(), func() State { s := shared(); s.Links[0].Port = 6092; return s }()},
		"last-address-goes": {
			change(func(s *State) { s.Routes = append(s.Routes, onOverlay) }),
			change(func(s *State) { s.Routes, s.Addresses = append(s.Routes, onOverlay), nil }),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.have.Firewall, test.want.Firewall = nft.Table{}, nft.Table{} // package nft tests its text
			golden.Check(t, name+".golden", Diff(test.have, test.want).String())
		})
	}
}

// onOverlay is a route with a link instead of a nexthop.
var onOverlay = Route{Table: mainTable, Dst: netip.MustParsePrefix("10.80.3.0/24"), Type: Unicast, Link: Overlay}

func withoutPeerB(s *State) {
	s.Neighbours, s.Nexthops, s.Routes = s.Neighbours[:1], s.Nexthops[:1], s.Routes[:2]
}

func TestUnsetMatchesAnything(t *testing.T) {
	have := State{Links: []Link{
		{Name: Overlay, Kind: KindGeneve, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1450, Port: 6091, Forwarding: true},
		{Name: "eth0", Kind: KindDevice, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, MTU: 9000, Forwarding: true, LinkLocal: true},
		{Name: "veth1", Kind: KindDevice, Down: true},
	}}
	want := State{
		Links: []Link{{Name: Overlay, Kind: KindGeneve, Port: 6091}, {Name: "eth0", Kind: KindDevice}},
		Rules: []Rule{{Priority: 1, From: netip.MustParsePrefix("0.0.0.0/0"), To: netip.MustParsePrefix("10.1.2.3/16")}},
	}
	have.Rules = []Rule{{Priority: 1, To: netip.MustParsePrefix("10.1.0.0/16")}}
	if p := Diff(have, want); !p.Empty() {
		t.Errorf("a state without wishes makes a plan:\n%s", p)
	}
}

func TestOrderOfListsDoesNotMatter(t *testing.T) {
	shuffled := nodeLike()
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(shuffled.Routes), func(i, j int) {
		shuffled.Routes[i], shuffled.Routes[j] = shuffled.Routes[j], shuffled.Routes[i]
	})
	slices.Reverse(shuffled.Rules)
	slices.Reverse(shuffled.Nexthops)
	if p := Diff(nodeLike(), shuffled); !p.Empty() {
		t.Errorf("the same state makes a plan:\n%s", p)
	}
	if diff := cmp.Diff(Diff(State{}, nodeLike()).String(), Diff(State{}, shuffled).String()); diff != "" {
		t.Errorf("plans of the same states differ:\n%s", diff)
	}
}

// TestGuard: the steps of the guard are the first steps of a creation and the last steps of a removal.
func TestGuard(t *testing.T) {
	isGuard := func(s Step) bool {
		route, isRoute := s.Object.(Route)
		_, isFirewall := s.Object.(Firewall)
		return isFirewall || isRoute && route.refuses()
	}
	creation := Diff(State{}, nodeLike()).Steps
	if n := slices.IndexFunc(creation, func(s Step) bool { return !isGuard(s) }); n != 3 {
		t.Errorf("creation begins with %d steps of the guard, want 2 routes and the firewall:\n%s", n, Plan{creation})
	}
	removal := Diff(nodeLike(), State{}).Steps
	slices.Reverse(removal)
	if n := slices.IndexFunc(removal, func(s Step) bool { return !isGuard(s) }); n != 3 {
		t.Errorf("removal ends with %d steps of the guard, want 2 routes and the firewall:\n%s", n, Plan{removal})
	}
}
