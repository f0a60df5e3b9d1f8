package kernel

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/netops"
)

// TestRandomWalk applies one random state after the other and compares the kernel with the desired state each time.
func TestRandomWalk(t *testing.T) {
	t.Parallel()
	seeds, steps := uint64(3), 100
	if testing.Short() {
		seeds, steps = 1, 50
	}
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		for seed := range seeds {
			ns := newNamespace(t)
			ns.IP("link add lqn-tunnel type veth peer name far")
			ns.IP("link set far up")
			k := ns.kernel()
			before := ns.IP("-d link")
			w := walk{random: rand.New(rand.NewPCG(seed, 76)), kind: kind}
			for range steps {
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				w.regroup(ns)
				reach(t, k, w.state())
			}
			reach(t, k, netops.State{})
			if len(ns.IP("-d link show type "+string(kind))) != 0 {
				t.Errorf("seed %d: links before:\n%s\nafter:\n%s", seed, before, ns.IP("-d link"))
			}
		}
	})
}

// walk generates states with few possible values, so that successive ones have much in common.
type walk struct {
	random *rand.Rand
	kind   netops.LinkKind
}

// often returns true in three of four cases.
func (w walk) often() bool { return w.random.IntN(4) > 0 }

func (w walk) state() netops.State {
	var s netops.State
	s.LocalRuleMoved = w.often()
	s.Links = append(s.Links, netops.Link{Name: netops.Tunnel, Kind: netops.KindDevice, MTU: 1400 + w.random.IntN(3), Group: netops.GroupTunnel, Forwarding: w.often(), MarkedPath: w.often()})
	links := []string{netops.Tunnel}
	if w.often() {
		links = append(links, netops.Overlay)
		s.Links = append(s.Links, w.overlay())
	}
	for _, link := range links {
		w.addressing(&s, link)
	}
	w.nexthops(&s, links)
	w.groups(&s)
	w.routes(&s, links)
	w.rules(&s)
	return s
}

// regroup moves some links, a foreign one among them, to random groups.
func (w walk) regroup(ns namespace) {
	groups := []uint32{0, 7, netops.GroupOverlay, netops.GroupTunnel}
	for _, link := range []string{netops.Overlay, netops.Tunnel, "lo"} {
		if w.random.IntN(4) == 0 {
			ns.Run("sh", "-c", fmt.Sprintf("! ip link show dev %[1]s || ip link set dev %[1]s group %[2]d", link, groups[w.random.IntN(len(groups))]))
		}
	}
}

// overlay returns a link that mostly differs in attributes that can be changed.
func (w walk) overlay() netops.Link {
	l := netops.Link{Name: netops.Overlay, Kind: w.kind, Port: 6091, MTU: 1400 + 10*w.random.IntN(3), Forwarding: w.often()}
	if w.random.IntN(10) == 0 {
		l.Port = 6092
	}
	if w.often() {
		l.Group = netops.GroupOverlay
	}
	if w.often() {
		l.MAC = net.HardwareAddr{2, 0, 0, 0, 0, byte(1 + w.random.IntN(6)/5)}
	}
	return l
}

// addressing adds addresses, two of them in one subnet, and neighbours.
func (w walk) addressing(s *netops.State, link string) {
	base := map[string]string{netops.Tunnel: "169.254.18.", netops.Overlay: "10.80.0."}[link]
	for _, host := range []string{"1/30", "2/30", "9/32", "10/32"} {
		if w.random.IntN(2) == 0 {
			s.Addresses = append(s.Addresses, netops.Address{Link: link, Prefix: netip.MustParsePrefix(base + host)})
		}
	}
	for _, host := range []string{"20", "21", "22"} {
		if w.often() {
			mac := net.HardwareAddr{2, 0, 0, 0, 1, byte(w.random.IntN(2))}
			s.Neighbours = append(s.Neighbours, netops.Neighbour{Link: link, IP: netip.MustParseAddr(base + host), MAC: mac})
		}
	}
}

// nexthops adds some nexthops on each link.
func (w walk) nexthops(s *netops.State, links []string) {
	for i := range uint32(2) {
		if w.often() {
			s.Nexthops = append(s.Nexthops, netops.Nexthop{ID: netops.NexthopTunnelBase + i, Link: netops.Tunnel})
		}
	}
	for i := range uint32(4) {
		if len(links) == 2 && w.often() {
			s.Nexthops = append(s.Nexthops, netops.Nexthop{
				ID: netops.NexthopBase + i, Link: netops.Overlay, VNI: 1 + uint32(w.random.IntN(2)),
				Via: netip.AddrFrom4([4]byte{10, 80, 0, byte(20 + w.random.IntN(3))}),
				Dst: netip.AddrFrom4([4]byte{192, 168, 0, byte(w.random.IntN(3))}),
			})
		}
	}
}

// groups adds groups with common members.
func (w walk) groups(s *netops.State) {
	for i := range uint32(2) {
		var g netops.NexthopGroup
		for _, n := range s.Nexthops {
			if w.random.IntN(2) == 0 {
				g.Members = append(g.Members, n.ID)
			}
		}
		if g.ID = netops.NexthopGroupBase + i; len(g.Members) > 0 {
			slices.Sort(g.Members)
			s.Groups = append(s.Groups, g)
		}
	}
}

// routes adds routes of every type, with both metrics for most destinations.
func (w walk) routes(s *netops.State, links []string) {
	for _, table := range []int{netops.MainTable, netops.RoutingTable, netops.ToPeer} {
		for _, dst := range []string{"10.11.0.0/16", "10.11.5.0/24", "10.12.0.9/32", "0.0.0.0/0"} {
			for _, metric := range []int{0, 500} {
				if !w.often() {
					continue
				}
				r := netops.Route{Table: table, Dst: netip.MustParsePrefix(dst), Metric: metric, Type: netops.Unicast}
				if w.often() {
					r.MTU = 1300 + w.random.IntN(2)
				}
				switch choice := w.random.IntN(6); {
				case choice == 0:
					r.Type, r.MTU = netops.Unreachable, 0
				case choice == 5:
					r.Type, r.Link = netops.Local, netops.Loopback
				case choice == 1:
					r.Link = links[w.random.IntN(len(links))]
				case choice == 2:
					r.Link = links[w.random.IntN(len(links))]
					r.Via = netip.AddrFrom4([4]byte{10, 81, 0, byte(w.random.IntN(3))})
				case choice == 3 && len(s.Groups) > 0:
					r.Nexthop = s.Groups[w.random.IntN(len(s.Groups))].ID
				case len(s.Nexthops) > 0:
					r.Nexthop = s.Nexthops[w.random.IntN(len(s.Nexthops))].ID
				default:
					continue
				}
				s.Routes = append(s.Routes, r)
			}
		}
	}
}

// rules adds rules of different priorities with all kinds of selectors.
func (w walk) rules(s *netops.State) {
	for priority := 50; priority < 56; priority++ {
		if !w.often() {
			continue
		}
		r := netops.Rule{Priority: priority, Table: netops.RoutingTable + w.random.IntN(2)}
		switch w.random.IntN(5) {
		case 0:
			r.From = netip.MustParsePrefix("10.244.1.5/32")
		case 1:
			r.To = netip.MustParsePrefix("10.11.0.0/16")
		case 2:
			r.IIf = netops.Overlay
		case 3:
			r.Mark = 0x4c
		}
		s.Rules = append(s.Rules, r)
	}
}
