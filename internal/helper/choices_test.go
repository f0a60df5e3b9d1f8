//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// Messages of a member.
var (
	fine        = echo.Content{}
	noWay       = echo.Content{NoWay: true}
	drains      = echo.Content{Draining: true}
	drainsNoWay = echo.Content{Draining: true, NoWay: true}
)

// elapse lets time pass in a bubble.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest's clock

// chooser is a node with two gateways, or a gateway with two tunnels: members 0 and 1.
type chooser struct {
	answer func(member int, c echo.Content)
	ask    func(member int, c echo.Content) // the member sends a request; nodes get none
	lose   func(member, consecutive int)
	silent func(member int)
	least  int // losses after which a member counts as not answering
	unused func() [2]bool
}

// used returns the numbers of the members that carry packets.
func (c chooser) used() string {
	var numbers []string
	for i, is := range c.unused() {
		if !is {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return strings.Join(numbers, " ")
}

// choosingNode returns a node; without a pod, the location of its first gateway is unknown.
func choosingNode(mode records.GatewayMode, noPod bool) chooser {
	p, n := testPeering(), newNodeProbes(nil)
	p.Settings.GatewayMode = &mode
	second := p.Gateways[0]
	second.Address = second.Address.Next()
	p.Gateways = append(p.Gateways, second)
	v := nodeView{Choice: serving.Choice{Peerings: []records.Peering{p}}, gateways: map[records.GatewayID]records.Gateway{}}
	var ids [2]records.GatewayID
	var probes [2]*gatewayProbes
	for i := range ids {
		ids[i] = records.GatewayID{Peering: p.Name, Number: i + 1}
		probes[i] = newGatewayProbes(7, 1000, n.news)
		probes[i].setUse(false, make(chan struct{}, 1))
		n.paths[gatewayKey{ids[i], p.Gateways[i].Address}] = probes[i]
		if i > 0 || !noPod {
			v.gateways[ids[i]] = testGateway()
		}
	}
	return chooser{
		answer: func(i int, c echo.Content) { probes[i].gatewayAnswered(echo.Message{Content: c}, 0) },
		ask:    func(int, echo.Content) {},
		lose:   func(i, consecutive int) { probes[i].Missed(consecutive, overlayMisses, time.Now()) },
		silent: func(i int) { probes[i].gatewaySilent() },
		least:  overlayMisses,
		unused: func() [2]bool { all := n.unused(v); return [2]bool{all[ids[0]], all[ids[1]]} },
	}
}

// twoTunnels returns the echoes of a gateway with two tunnels, and its view.
func twoTunnels(ownGateways int) (*gatewayEchoes, gatewayView) {
	v := testView()
	v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
	for len(v.peering.Gateways) < ownGateways {
		v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
	}
	g, _ := testEchoes(v)
	return g, v
}

func choosingGateway(mode records.GatewayMode) chooser {
	g, v := twoTunnels(1)
	return chooser{
		answer: func(i int, c echo.Content) { g.tunnel(i+1).answeredBy(echo.Message{Content: c}, 0) },
		ask:    func(i int, c echo.Content) { g.tunnel(i+1).answer(netip.AddrPort{}, echo.Message{Content: c}) },
		lose:   func(i, consecutive int) { g.tunnel(i + 1).missed(consecutive) },
		silent: func(i int) { g.tunnel(i + 1).silent() },
		least:  2 * gatewayTrain,
		unused: func() [2]bool {
			all := g.unused(v.own(), mode)
			_, first := all[1]
			_, second := all[2]
			return [2]bool{first, second}
		},
	}
}

// signal is what comes from a member every echoesEvery; number counts from 1 in each phase.
type signal func(c chooser, member, number int)

const echoesEvery = 200 * time.Millisecond

func answering(content echo.Content) signal {
	return func(c chooser, i, _ int) { c.answer(i, content) }
}

// none are no messages: the member is silent after 0.4 s, and after 0.6 s its echoes count as lost.
func none(c chooser, i, number int) {
	switch {
	case number == 3:
		c.silent(i)
	case number > 3:
		for k := range c.least {
			c.lose(i, k+1)
		}
	}
}

// losing loses so many echoes in a row at once.
func losing(n int) signal {
	return func(c chooser, i, number int) {
		for k := range n {
			if number == 1 {
				c.lose(i, k+1)
			}
		}
	}
}

// asking sends requests, and gets no answers through.
func asking(content echo.Content) signal {
	return func(c chooser, i, number int) { none(c, i, number); c.ask(i, content) }
}

// both answers, and sends requests with other content.
func both(answer, request echo.Content) signal {
	return func(c chooser, i, _ int) { c.answer(i, answer); c.ask(i, request) }
}

// nothing yet: not even losses are known.
func nothing(chooser, int, int) {}

// phase is a time in which both members send something.
type phase struct {
	lasts         time.Duration
	first, second signal
}

// TestWhichMembersCarryPackets checks which gateways a node uses, and which tunnels a gateway, after each situation. At
// least one is used at any time.
func TestWhichMembersCarryPackets(t *testing.T) {
	const ms = time.Millisecond
	yes, none := answering(fine), signal(none)
	up := phase{2 * time.Second, yes, yes}
	few, many := answering(echo.Content{Nodes: 1}), answering(echo.Content{Nodes: 2})
	// back is a second member that was lost for long, and answers again for less than a moment; the first goes on.
	back := func(first signal) []phase {
		return []phase{up, {4 * time.Second, yes, none}, {400 * ms, first, yes}}
	}
	for _, test := range []struct {
		name          string
		phases        []phase
		mode          records.GatewayMode
		noPod         bool // the first gateway has none
		node, gateway string
	}{
		{"a start", nil, "", false, "1 2", "1 2"},
		{"one has answered", []phase{{200 * ms, yes, nothing}}, "", false, "1", "1"},
		{"both answer", []phase{up}, "", false, "1 2", "1 2"},
		{"both answer, active-standby", []phase{up}, records.ActiveStandby, false, "1", "1"},
		{"a gateway without a pod", []phase{up}, "", true, "2", "1 2"},
		{"a gateway without a pod, and a silent one", []phase{up, {600 * ms, none, none}}, "", true, "2", "1 2"},

		{"silent for less than 0.4 s", []phase{up, {400 * ms, none, yes}}, "", false, "1 2", "1 2"},
		{"silent", []phase{up, {600 * ms, none, yes}}, "", false, "2", "2"},
		{"silent, active-standby", []phase{up, {600 * ms, none, yes}}, records.ActiveStandby, false, "2", "2"},
		{"both silent", []phase{up, {600 * ms, none, none}}, "", false, "1 2", "1 2"},
		{"both silent for long", []phase{up, {5 * time.Second, none, none}}, "", false, "1 2", "1 2"},
		{"silent beside one that was silent for long", []phase{up, {5 * time.Second, none, yes}, {time.Second, none, none}}, "", false, "2", "2"},
		{"silent beside a new one", []phase{{2 * time.Second, yes, nothing}, {time.Second, none, none}}, "", false, "1", "1"},
		{"answers again for less than a moment", []phase{up, {2 * time.Second, none, yes}, {time.Second, yes, yes}}, "", false, "2", "2"},
		{"answers again for a moment", []phase{up, {2 * time.Second, none, yes}, {1200 * ms, yes, yes}}, "", false, "1 2", "1 2"},
		{"two losses", []phase{up, {200 * ms, losing(2), yes}}, "", false, "1 2", "1 2"},
		{"three losses", []phase{up, {200 * ms, losing(3), yes}}, "", false, "2", "1 2"},
		{"nine losses", []phase{up, {200 * ms, losing(9), yes}}, "", false, "2", "1 2"},
		{"ten losses", []phase{up, {200 * ms, losing(10), yes}}, "", false, "2", "2"},

		{"no way on", []phase{up, {200 * ms, answering(noWay), yes}}, "", false, "2", "2"},
		{"both no way on", []phase{up, {200 * ms, answering(noWay), answering(noWay)}}, "", false, "1 2", "1 2"},
		{"no way on, in requests only", []phase{up, {200 * ms, both(fine, noWay), yes}}, "", false, "1 2", "2"},

		{"drains", []phase{up, {200 * ms, answering(drains), yes}}, "", false, "2", "2"},
		{"both drain", []phase{up, {200 * ms, answering(drains), answering(drains)}}, "", false, "1 2", "1 2"},
		{"both drain, one is silent", []phase{up, {200 * ms, answering(drains), answering(drains)}, {600 * ms, answering(drains), none}}, "", false, "1", "1"},
		{"drains in requests", []phase{up, {200 * ms, both(fine, drains), yes}}, "", false, "1 2", "2"},
		{"drains beside a silent one", []phase{up, {600 * ms, yes, none}, {200 * ms, answering(drains), none}}, "", false, "1", "1"},
		{"drains beside one that is just back", back(answering(drains)), "", false, "1", "1"},
		{"drains and misses one, beside one that is just back", append(back(answering(drains)), phase{200 * ms, losing(1), yes}), "", false, "2", "2"},
		{"drains and misses one, beside a silent one", []phase{up, {600 * ms, yes, none}, {200 * ms, answering(drains), none}, {200 * ms, losing(1), none}}, "", false, "1", "1"},
		{"ended beside a silent one", []phase{up, {200 * ms, answering(drains), yes}, {200 * ms, answering(drainsNoWay), yes}, {600 * ms, none, none}}, "", false, "2", "2"},
		{"ended beside one that is away for long", []phase{up, {4 * time.Second, yes, none}, {time.Second, answering(drains), none}, {time.Second, none, none}}, "", false, "2", "2"},
		{"both ended", []phase{up, {200 * ms, answering(drains), answering(drains)}, {time.Second, none, none}}, "", false, "1 2", "1 2"},
		{"draining is withdrawn", []phase{up, {time.Second, answering(drains), answering(drains)}, {200 * ms, yes, answering(drains)}}, "", false, "1", "1"},
		{"draining one way, beside one that is just back", []phase{up, {4 * time.Second, yes, none}, {time.Second, asking(drains), yes}}, "", false, "2", "2"},
		{"the next pod of one that drained", []phase{up, {200 * ms, answering(drains), yes}, {800 * ms, none, yes}, {time.Second, yes, yes}}, "", false, "2", "2"},
		{"the next pod, after a moment", []phase{up, {200 * ms, answering(drains), yes}, {800 * ms, none, yes}, {1400 * ms, yes, yes}}, "", false, "1 2", "1 2"},

		{"reaches fewer nodes for less than a moment", []phase{up, {time.Second, few, many}}, "", false, "1 2", "1 2"},
		{"reaches fewer nodes", []phase{up, {1400 * ms, few, many}}, "", false, "1 2", "2"},
		{"reaches fewer nodes, active-standby", []phase{up, {1400 * ms, few, many}}, records.ActiveStandby, false, "1", "2"},
		{"reaches fewer nodes than one that falls silent", []phase{up, {1400 * ms, few, many}, {600 * ms, few, none}}, "", false, "1", "1"},
		{"reaches fewer nodes than one that drains", []phase{up, {1400 * ms, few, many}, {200 * ms, few, answering(echo.Content{Nodes: 2, Draining: true})}}, "", false, "1", "1"},
		{"reaches fewer nodes, and both fall silent", []phase{up, {1400 * ms, few, many}, {600 * ms, none, none}}, "", false, "1 2", "1 2"},
		{"reaches fewer nodes than one that comes back", []phase{up, {2 * time.Second, few, none}, {1200 * ms, few, many}}, "", false, "1 2", "2"},
		{"sends no number of nodes", []phase{up, {1400 * ms, yes, many}}, "", false, "1 2", "1 2"},
		{"reaches as many nodes again", []phase{up, {1400 * ms, few, many}, {1400 * ms, many, many}}, "", false, "1 2", "1 2"},
	} {
		for kind, want := range map[string]string{"node": test.node, "gateway": test.gateway} {
			bubble.Run(t, test.name+", at a "+kind, func(t *testing.T) {
				c := choosingGateway(test.mode)
				if kind == "node" {
					c = choosingNode(test.mode, test.noPod)
				}
				for _, p := range test.phases {
					for number := range int(p.lasts / echoesEvery) {
						p.first(c, 0, number+1)
						p.second(c, 1, number+1)
						if c.used() == "" {
							t.Fatal("none carries packets")
						}
						elapse(echoesEvery)
					}
				}
				if got := c.used(); got != want {
					t.Errorf("packets go by %s, want %s", got, want)
				}
			})
		}
	}
}

// TestWhatGatewaysAnnounce checks what a gateway announces to its nodes and to the peer, by its tunnels and the echoes
// of its nodes.
func TestWhatGatewaysAnnounce(t *testing.T) {
	type heard struct {
		ago  time.Duration
		deaf bool // it gets no answers
	}
	const ms = time.Millisecond
	here := []heard{{0, false}, {0, false}}
	usable := func(g *gatewayEchoes) { passing(1250*ms, func() { g.tunnel(1).answeredBy(echo.Message{}, 0) }) }
	answered := func(c echo.Content) func(*gatewayEchoes) {
		return func(g *gatewayEchoes) { g.tunnel(1).answeredBy(echo.Message{Content: c}, 0) }
	}
	silent := func(*gatewayEchoes) {}
	for _, test := range []struct {
		name            string
		gateways        int // of this cluster
		tunnels         func(g *gatewayEchoes)
		nodes           []heard
		drains, ends    bool
		toNodes, toPeer bool // no way on
		reaches         uint32
	}{
		{"all is well", 2, usable, here, false, false, false, false, 2},
		{"no tunnel is answered", 2, silent, here, false, false, true, false, 2},
		{"no tunnel of the only gateway is answered", 1, silent, here, false, false, false, false, 2},
		{"a tunnel is just back", 2, answered(fine), here, false, false, true, false, 2},
		{"a tunnel is just back, and drains", 2, answered(drains), here, false, false, true, false, 2},
		{"a tunnel drains", 2, func(g *gatewayEchoes) { usable(g); answered(drains)(g); g.tunnel(2).silent() }, here, false, false, false, false, 2},
		{"a tunnel has ended", 2, answered(drainsNoWay), here, false, false, true, false, 2},
		{"the peer's gateway reaches no node", 2, answered(noWay), here, false, false, true, false, 2},
		{"one tunnel reaches fewer nodes, the other one is silent", 2, func(g *gatewayEchoes) {
			passing(3*time.Second, func() {
				g.tunnel(1).answeredBy(echo.Message{Content: echo.Content{Nodes: 1}}, 0)
				g.tunnel(2).answeredBy(echo.Message{Content: echo.Content{Nodes: 2}}, 0)
			})
			g.tunnel(2).silent()
		}, here, false, false, false, false, 2},
		{"no node", 2, usable, nil, false, false, false, true, 0},
		{"no node of the only gateway", 1, usable, nil, false, false, false, false, 0},
		{"a node just before the limit", 2, usable, []heard{{membership.ReachedWithin - ms, false}}, false, false, false, false, 1},
		{"a node at the limit", 2, usable, []heard{{membership.ReachedWithin, false}}, false, false, false, false, 0},
		{"a node that is not reached, just before the other limit", 2, usable, []heard{{membership.AnyNodeWithin - ms, false}}, false, false, false, false, 0},
		{"nodes that are silent", 2, usable, []heard{{membership.AnyNodeWithin, false}, {membership.AnyNodeWithin, false}}, false, false, false, true, 0},
		{"a node that gets no answers", 2, usable, []heard{{0, true}}, false, false, false, true, 0},
		{"one of two gets no answers", 2, usable, []heard{{0, true}, {0, false}}, false, false, false, false, 1},
		{"it drains", 2, usable, here, true, false, false, false, 2},
		{"it announces its end", 2, usable, here, true, true, true, true, 2},
	} {
		bubble.Run(t, test.name, func(t *testing.T) {
			g, _ := twoTunnels(test.gateways)
			test.tunnels(g)
			slices.SortFunc(test.nodes, func(a, b heard) int { return int(b.ago - a.ago) }) // oldest first
			for i, n := range test.nodes {
				from, m := echoOf([]string{"10.80.0.7", "10.80.0.8"}[i], echo.Report{Node: uint32(7 + i)})
				m.Content.NoWay = n.deaf
				g.answer(from, m)
				if next := i + 1; next < len(test.nodes) {
					elapse(n.ago - test.nodes[next].ago)
				} else {
					elapse(n.ago)
				}
			}
			if test.drains {
				g.drain()
			}
			if test.ends {
				g.leaving.Check(nil, time.Now()) // no one sends
			}
			toNodes, toPeer := g.answer(echoOf("10.80.0.99", echo.Report{})), g.toPeer()
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
