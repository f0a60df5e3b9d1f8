//go:build linux

package gateway

import (
	"math"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// TestPeerMovesOnlyItself checks that a gateway always uses one of its tunnels, and its nodes one gateway, whatever the
// peer sends in all its tunnels.
func TestPeerMovesOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
		v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
		g, _ := testEchoes(v)
		announce := func(c echo.Content) {
			for i := range v.own().Tunnels {
				g.tunnel(i+1).answeredBy(echo.Message{Content: c}, 0)
			}
		}
		noWay := func() bool { return g.answer(echoOf("10.80.0.7", echo.Report{})).NoWay }
		for range membership.Answers {
			if !noWay() {
				t.Error("a way on, though no tunnel has been answered for a moment")
			}
			announce(echo.Content{})
			time.Sleep(membership.Moment / 2) //nolint:forbidigo // synctest's clock
		}
		for _, c := range []echo.Content{{}, {Draining: true}, {NoWay: true}, {NoWay: true, Draining: true, Unused: true}, {Nodes: math.MaxUint32}, {Nodes: 1}, {}} {
			announce(c)
			if unused := g.unused(v.own(), records.ActiveActive); len(unused) > 0 {
				t.Errorf("the peer announces %+v in all tunnels: unused are %v", c, unused)
			}
			if want := c.NoWay || g.tunnel(1).Standing() == membership.Recovered; noWay() != want {
				t.Errorf("the peer announces %+v: the gateway announces to its nodes that it has no way on: %t", c, noWay())
			}
		}
		for _, content := range []echo.Content{{}, {Draining: true}} {
			changes, is := 0, noWay()
			for i := range 200 { // in four seconds
				content.NoWay = i%2 == 0
				announce(content)
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // synctest's clock
				if now := noWay(); now != is {
					changes, is = changes+1, now
				}
			}
			if changes > 4 {
				t.Errorf("the peer announces %+v, with and without a way on, fifty times a second: its nodes receive %d changes in four seconds", content, changes)
			}
		}
		v.peering.Gateways = v.peering.Gateways[:1]
		g.update(v)
		if announce(echo.Content{NoWay: true}); noWay() {
			t.Error("the only gateway announces to its nodes that it has no way on")
		}
	})
}

// TestIdleGateway checks that a draining gateway may end when all live nodes and peers have reported that they do not
// use it.
func TestIdleGateway(t *testing.T) {
	if membership.LiveFor != health.NodeSilence {
		t.Errorf("a silent node is ignored by a drain after %s, and reported after %s", membership.LiveFor, health.NodeSilence)
	}
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		expect := func(what string, want bool) {
			t.Helper()
			if g.leaving.Idle(g.senders(), time.Now()) != want {
				t.Errorf("%s: idle %t, want %t", what, !want, want)
			}
		}
		node := func(internal string, unused bool) {
			from, m := echoOf(internal, echo.Report{Node: nodeNumber(internal)})
			m.Content.Unused = unused
			if c := g.answer(from, m); !c.Draining {
				t.Error("a node gets no announcement of the drain")
			}
		}
		peer := func(unused bool) {
			m := echo.Message{Content: echo.Content{Unused: unused}}
			if c := g.tunnel(1).answer(netip.AddrPort{}, m); !c.Draining {
				t.Error("the peer gets no announcement of the drain")
			}
			g.tunnel(1).answeredBy(echo.Message{}, 0)
		}
		g.drain()
		expect("no node is alive", true)
		node("10.80.0.7", true)
		node("10.80.0.8", false)
		expect("one node sends", false)
		node("10.80.0.8", true)
		expect("no node sends", true)
		peer(false)
		expect("the peer sends", false)
		peer(true)
		expect("no sender is left", true)
		node("10.80.0.8", false)
		expect("a node sends again", false)
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		expect("the node is dead", true)
		peer(false)
		g.tunnel(1).silent()
		expect("the peer's gateway sends and does not answer", false)
		peer(true)
		node("10.80.0.8", true)
		expect("no sender is left", true)
		time.Sleep(time.Millisecond) //nolint:forbidigo // as above
		g.unneeded()
		if g.unneeded() {
			t.Error("over before all have reported again")
		}
		expect("the end is announced, and nobody has reported since", false)
		node("10.80.0.8", true)
		expect("the peer has not reported since", false)
		peer(true)
		expect("all have reported since", true)
	})
}

// TestStalledBesideTheEnded checks that packets wait for a gateway without CPU time if the only other one announces its
// end and ends.
func TestStalledBesideTheEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		var ended, stalled membership.Member
		ask := func() echo.Content {
			return g.answer(echoOf("10.80.0.7", echo.Report{Node: 7}))
		}
		for range membership.Answers {
			ended.Answered(ask(), time.Now())
			stalled.Answered(echo.Content{}, time.Now())
			time.Sleep(membership.Moment / 2) //nolint:forbidigo // synctest's clock
		}
		g.drain()
		g.leaving.Check(nil, time.Now())
		ended.Answered(ask(), time.Now())
		stalled.Silent(time.Now())
		if unused := membership.Unused([]membership.Standing{ended.Standing(), stalled.Standing()}, false); !unused[0] || unused[1] {
			t.Errorf("unused are %v, want the one that ends", unused)
		}
	})
}
