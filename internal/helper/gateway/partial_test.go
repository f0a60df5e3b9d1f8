//go:build linux

package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/choices"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// TestPartialGateways checks that among the peer's usable gateways, those that reach most nodes carry packets, after
// this was so for a moment. The numbers of nodes decide nothing else.
func TestPartialGateways(t *testing.T) {
	type reached [2]uint32 // from the peer's gateways, the numbers of nodes that they reach
	const blip = 750 * time.Millisecond
	for name, test := range map[string]struct {
		steps []reached // five seconds each
		blip  reached   // between the steps; the zero value: none
		mode  records.GatewayMode
		want  [][]int // unused tunnels at the end of each step
	}{
		"a node that dies":                {steps: []reached{{3, 3}, {2, 2}}, blip: reached{3, 2}, want: [][]int{nil, nil}},
		"a node that comes":               {steps: []reached{{3, 3}, {4, 4}}, blip: reached{4, 3}, want: [][]int{nil, nil}},
		"a node that none ever reaches":   {steps: []reached{{2, 2}, {2, 2}}, want: [][]int{nil, nil}},
		"a node cut off from one":         {steps: []reached{{3, 3}, {3, 2}, {3, 3}}, want: [][]int{nil, {2}, nil}},
		"for a moment it is not":          {steps: []reached{{3, 2}, {3, 2}}, blip: reached{3, 3}, want: [][]int{{2}, {2}}},
		"each misses another one":         {steps: []reached{{3, 2}, {2, 2}}, want: [][]int{{2}, nil}},
		"one that it needs has died, too": {steps: []reached{{3, 2}, {2, 1}}, want: [][]int{{2}, {2}}},
		"gateways that send no number":    {steps: []reached{{0, 0}, {3, 0}, {0, 2}}, want: [][]int{nil, nil, nil}},
		"the first of active-standby":     {steps: []reached{{3, 3}, {2, 3}, {3, 3}}, mode: records.ActiveStandby, want: [][]int{{2}, {1}, {2}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := testView()
				v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
				g, _ := testEchoes(v)
				unused := func() []int { return slices.Sorted(maps.Keys(g.unused(v.own(), test.mode))) }
				say := func(nodes reached) {
					for i, n := range nodes {
						m := echo.Message{Content: echo.Content{Nodes: n}}
						g.tunnel(i+1).answer(netip.AddrPort{}, m)
						g.tunnel(i+1).answeredBy(m, 0)
					}
				}
				for i, nodes := range test.steps {
					before := unused()
					if i > 0 && test.blip != (reached{}) {
						choices.Passing(blip, func() {
							if say(test.blip); !slices.Equal(unused(), before) {
								t.Errorf("unused are %v at once, they were %v", unused(), before)
							}
						})
					}
					choices.Passing(5*time.Second, func() { say(nodes) })
					if got := unused(); !slices.Equal(got, test.want[i]) {
						t.Errorf("they reach %d nodes: unused are %v, want %v", nodes, got, test.want[i])
					}
				}
			})
		})
	}
}

// TestPartialIsBetterThanNone checks that a gateway that reaches fewer nodes than another one carries packets as soon
// as the other one falls silent, and none once it is back.
func TestPartialIsBetterThanNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
		g, _ := testEchoes(v)
		say := func(number int, c echo.Content) { g.tunnel(number).answeredBy(echo.Message{Content: c}, 0) }
		expect := func(what string, want map[int]string) {
			t.Helper()
			if got := g.unused(v.own(), ""); !maps.Equal(got, want) {
				t.Errorf("%s: unused are %v, want %v", what, got, want)
			}
		}
		fewer := map[int]string{2: "other gateways reach more nodes"}
		both := func() { say(1, echo.Content{Nodes: 2}); say(2, echo.Content{Nodes: 1}) }
		choices.Passing(3*time.Second, both)
		expect("a node is cut off from the second", fewer)
		g.tunnel(1).silent()
		expect("the first falls silent", map[int]string{1: "no answer"})
		choices.Passing(5*time.Second, func() { say(2, echo.Content{Nodes: 1}) })
		expect("it is dead", map[int]string{1: "no answer"})
		choices.Passing(membership.Moment, func() {
			both()
			expect("it has just come back", map[int]string{1: "it has answered for less than 1s"})
		})
		both()
		expect("it is back", fewer)
		say(1, echo.Content{Nodes: 2, Draining: true})
		expect("it drains", map[int]string{1: "draining"})
	})
}

// TestReachedNodes checks that a gateway counts the nodes whose echoes arrive and are answered.
func TestReachedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		receive := func(deaf bool, internal ...string) func() {
			return func() {
				for _, a := range internal {
					from, m := echoOf(a, echo.Report{Node: nodeNumber(a)})
					m.Content.NoWay = deaf
					g.answer(from, m)
				}
			}
		}
		g.several = true
		expect := func(what string, want uint32) {
			t.Helper()
			if got := g.tunnel(1).content(); got.Nodes != want || got.NoWay != (want == 0) {
				t.Errorf("%s: %d nodes, no way on %t, want %d", what, got.Nodes, got.NoWay, want)
			}
		}
		expect("none was heard", 0)
		choices.Passing(time.Second, receive(false, "10.80.0.7", "10.80.0.8", "10.80.0.99"))
		expect("two of three are nodes", 2)
		choices.Passing(time.Second, receive(false, "10.80.0.8"))
		expect("one falls silent", 1)
		choices.Passing(time.Second, receive(true, "10.80.0.8"))
		expect("answers do not arrive at the other", 0)
		choices.Passing(time.Second, receive(false, "10.80.0.7", "10.80.0.8"))
		expect("both are back", 2)
	})
}
