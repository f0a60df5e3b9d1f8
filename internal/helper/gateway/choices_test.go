//go:build linux

package gateway

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/choices"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// twoTunnels returns the echoes of a gateway with two tunnels, and its view.
func twoTunnels(ownGateways int) (*echoes, view) {
	v := testView()
	v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
	for len(v.peering.Gateways) < ownGateways {
		v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
	}
	g, _ := testEchoes(v)
	return g, v
}

func choosingGateway(mode records.GatewayMode, _ bool) choices.Chooser {
	g, v := twoTunnels(1)
	return choices.Chooser{
		Answer: func(i int, c echo.Content) { g.tunnel(i+1).answeredBy(echo.Message{Content: c}, 0) },
		Ask:    func(i int, c echo.Content) { g.tunnel(i+1).answer(netip.AddrPort{}, echo.Message{Content: c}) },
		Lose:   func(i, consecutive int) { g.tunnel(i + 1).missed(consecutive) },
		Silent: func(i int) { g.tunnel(i + 1).silent() },
		Least:  2 * gatewayTrain,
		Unused: func() [2]bool {
			all := g.unused(v.own(), mode)
			_, first := all[1]
			_, second := all[2]
			return [2]bool{first, second}
		},
	}
}

// TestWhichTunnelsCarryPackets checks the table of choices for a gateway.
func TestWhichTunnelsCarryPackets(t *testing.T) { choices.Run(t, "gateway", choosingGateway) }

// TestWhatGatewaysAnnounce checks what a gateway announces to its nodes and to the peer, by its tunnels and the echoes
// of its nodes.
func TestWhatGatewaysAnnounce(t *testing.T) {
	type received struct {
		ago        time.Duration
		unanswered bool
	}
	const ms = time.Millisecond
	live := []received{{0, false}, {0, false}}
	usable := func(g *echoes) { choices.Passing(1250*ms, func() { g.tunnel(1).answeredBy(echo.Message{}, 0) }) }
	answered := func(c echo.Content) func(*echoes) {
		return func(g *echoes) { g.tunnel(1).answeredBy(echo.Message{Content: c}, 0) }
	}
	silent := func(*echoes) {}
	for _, test := range []struct {
		name            string
		gateways        int // of this cluster
		tunnels         func(g *echoes)
		nodes           []received
		drains, ends    bool
		toNodes, toPeer bool // no way on
		reaches         uint32
	}{
		{"all is well", 2, usable, live, false, false, false, false, 2},
		{"no tunnel is answered", 2, silent, live, false, false, true, false, 2},
		{"no tunnel of the only gateway is answered", 1, silent, live, false, false, false, false, 2},
		{"a tunnel is just back", 2, answered(choices.Fine), live, false, false, true, false, 2},
		{"a tunnel is just back, and drains", 2, answered(choices.Drains), live, false, false, true, false, 2},
		{"a tunnel drains", 2, func(g *echoes) { usable(g); answered(choices.Drains)(g); g.tunnel(2).silent() }, live, false, false, false, false, 2},
		{"a tunnel has ended", 2, answered(choices.DrainsNoWay), live, false, false, true, false, 2},
		{"the peer's gateway reaches no node", 2, answered(choices.NoWay), live, false, false, true, false, 2},
		{"one tunnel reaches fewer nodes, the other one is silent", 2, func(g *echoes) {
			choices.Passing(3*time.Second, func() {
				g.tunnel(1).answeredBy(echo.Message{Content: echo.Content{Nodes: 1}}, 0)
				g.tunnel(2).answeredBy(echo.Message{Content: echo.Content{Nodes: 2}}, 0)
			})
			g.tunnel(2).silent()
		}, live, false, false, false, false, 2},
		{"no node", 2, usable, nil, false, false, false, true, 0},
		{"no node of the only gateway", 1, usable, nil, false, false, false, false, 0},
		{"a node just before the limit", 2, usable, []received{{membership.ReachedWithin - ms, false}}, false, false, false, false, 1},
		{"a node at the limit", 2, usable, []received{{membership.ReachedWithin, false}}, false, false, false, false, 0},
		{"a node that is not reached, just before the other limit", 2, usable, []received{{membership.AnyNodeWithin - ms, false}}, false, false, false, false, 0},
		{"nodes that are silent", 2, usable, []received{{membership.AnyNodeWithin, false}, {membership.AnyNodeWithin, false}}, false, false, false, true, 0},
		{"a node that gets no answers", 2, usable, []received{{0, true}}, false, false, false, true, 0},
		{"one of two gets no answers", 2, usable, []received{{0, true}, {0, false}}, false, false, false, false, 1},
		{"it drains", 2, usable, live, true, false, false, false, 2},
		{"it announces its end", 2, usable, live, true, true, true, true, 2},
	} {
		bubble.Run(t, test.name, func(t *testing.T) {
			g, _ := twoTunnels(test.gateways)
			test.tunnels(g)
			slices.SortFunc(test.nodes, func(a, b received) int { return int(b.ago - a.ago) }) // oldest first
			for i, n := range test.nodes {
				from, m := echoOf([]string{"10.80.0.7", "10.80.0.8"}[i], echo.Report{Node: uint32(7 + i)})
				m.Content.NoWay = n.unanswered
				g.answer(from, m)
				if next := i + 1; next < len(test.nodes) {
					choices.Elapse(n.ago - test.nodes[next].ago)
				} else {
					choices.Elapse(n.ago)
				}
			}
			if test.drains {
				g.drain()
			}
			if test.ends {
				g.leaving.Check(nil, time.Now()) // no one sends
			}
			toNodes, toPeer := g.answer(echoOf("10.80.0.99", echo.Report{})), g.tunnel(1).content()
			if toNodes.NoWay != test.toNodes || toPeer.NoWay != test.toPeer {
				t.Errorf("no way on: to nodes %t, to the peer %t, want %t, %t", toNodes.NoWay, toPeer.NoWay, test.toNodes, test.toPeer)
			}
			if toPeer.Nodes != test.reaches {
				t.Errorf("it reaches %d nodes, want %d", toPeer.Nodes, test.reaches)
			}
			if toNodes.Draining != test.drains || toPeer.Draining != test.drains {
				t.Errorf("drains: to nodes %t, to the peer %t, want %t", toNodes.Draining, toPeer.Draining, test.drains)
			}
		})
	}
}
