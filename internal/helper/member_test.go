//go:build linux

package helper

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
)

// TestMember checks that a member is usable after a moment of answers, and not when it is silent or announces that it
// cannot forward.
func TestMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		m := member{wake: wake}
		expect := func(what string, want standing, news bool) {
			t.Helper()
			woken := false
			select {
			case <-wake:
				woken = true
			default:
			}
			if m.state != want || woken != news {
				t.Errorf("%s: standing %d, woken %t; want %d, %t", what, m.state, woken, want, news)
			}
		}
		pass := func() { time.Sleep(memberMoment / 2) } //nolint:forbidigo // synctest's clock
		expect("before any answer", gone, false)
		m.answered(echo.Content{})
		expect("first answer", recovered, true)
		for range 10 {
			m.answered(echo.Content{})
		}
		expect("many answers at once", recovered, false)
		pass()
		m.answered(echo.Content{})
		expect("after half a moment", recovered, false)
		pass()
		m.answered(echo.Content{})
		expect("after a moment", usable, true)
		m.answered(echo.Content{Draining: true})
		expect("draining", draining, true)
		m.answered(echo.Content{Draining: true, NoWay: true})
		expect("draining without a way on", finished, true)
		m.answered(echo.Content{NoWay: true})
		expect("no way on", down, true)
		m.answered(echo.Content{})
		expect("a way on again", recovered, true)
		pass()
		pass()
		m.answered(echo.Content{})
		expect("two answers", recovered, false)
		m.missed(2, 3)
		expect("two lost", recovered, false)
		m.missed(3, 3)
		expect("silent", down, true)
		m.announced(echo.Content{})
		expect("what it asks is no answer", down, false)
		for range memberGone / memberMoment {
			pass()
			pass()
			m.missed(4, 3)
		}
		expect("silent for long", gone, true)
		for range memberAnswers {
			m.answered(echo.Content{})
			pass()
			pass()
		}
		m.answered(echo.Content{})
		expect("back", usable, true)
		m.silent()
		expect("its answers stay away", down, true)
		m.missed(1, 3)
		expect("and one is lost", down, false)
		m.answered(echo.Content{Draining: true})
		expect("it drains", draining, true)
		m.missed(1, 3)
		expect("it drains, and one is lost", ending, true)
		m.answered(echo.Content{Draining: true})
		expect("it still drains", draining, true)
		m.missed(1, 3)
		expect("one is lost again", ending, true)
		m.missed(3, 3)
		expect("it has ended", finished, true)
		m.announced(echo.Content{})
		expect("another one in its place", gone, true)
		m.answered(echo.Content{Draining: true})
		m.missed(1, 3)
		expect("one that drains", ending, true)
		m.answered(echo.Content{})
		expect("another one in its place, at once", gone, true)
	})
}

// TestDrainingBesideTheDead checks that packets stay with a draining gateway after one lost echo if the other gateway
// is dead.
func TestDrainingBesideTheDead(t *testing.T) {
	alive, dead := member{}, member{}
	alive.answered(echo.Content{Draining: true})
	dead.missed(overlayMisses, overlayMisses)
	alive.missed(1, overlayMisses)
	alive.silent()
	if unused := unusedOf([]standing{alive.state, dead.state}, ""); unused[0] {
		t.Error("packets go by the gateway that is dead, not by the one that drains")
	}
}

// TestNewBesideTheStalled checks that packets stay with the only gateway while it gets no CPU time, if a new gateway is
// silent or cannot forward yet.
func TestNewBesideTheStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second member
		for range memberAnswers {
			first.answered(echo.Content{})
			time.Sleep(memberMoment / 2) //nolint:forbidigo // synctest's clock
		}
		expect := func(what string) {
			t.Helper()
			if unused := unusedOf([]standing{first.state, second.state}, ""); unused[0] || !unused[1] {
				t.Errorf("%s: unused are %v", what, unused)
			}
		}
		first.missed(overlayMisses, overlayMisses)
		expect("the new one has never answered")
		second.answered(echo.Content{NoWay: true})
		expect("the new one has no way on")
		first.announced(echo.Content{NoWay: true})
		expect("neither has a way on")
	})
}

// TestUnusedOf checks that the best remaining members carry packets, whatever their standing.
func TestUnusedOf(t *testing.T) {
	all := func(s ...standing) []standing { return s }
	for _, test := range []struct {
		members []standing
		mode    records.GatewayMode
		used    []int
	}{
		{all(down), "", []int{0}},
		{all(down, down), "", []int{0, 1}},
		{all(down, recovered), "", []int{1}},
		{all(draining, recovered), "", []int{0}},
		{all(finished, down), "", []int{1}},
		{all(finished, gone), "", []int{1}},
		{all(gone, gone), "", []int{0, 1}},
		{all(gone, down), "", []int{1}},
		{all(ending, down), "", []int{0}},
		{all(ending, recovered), "", []int{1}},
		{all(finished, finished), "", []int{0, 1}},
		{all(draining, usable, down, usable), records.ActiveActive, []int{1, 3}},
		{all(draining, usable, down, usable), records.ActiveStandby, []int{1}},
		{all(down, down), records.ActiveStandby, []int{0}},
	} {
		var used []int
		for i, unused := range unusedOf(test.members, test.mode) {
			if !unused {
				used = append(used, i)
			}
		}
		if !slices.Equal(used, test.used) {
			t.Errorf("of %v, mode %q, used are %v, want %v", test.members, test.mode, used, test.used)
		}
	}
}

// TestPeerMovesOnlyItself checks that a gateway always uses one of its tunnels, and its nodes one gateway, whatever the
// peer sends in all its tunnels.
func TestPeerMovesOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		v.peering.Gateways[0].Tunnels = append(v.peering.Gateways[0].Tunnels, v.peering.Gateways[0].Tunnels[0])
		v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
		g, _ := testEchoes(v)
		tell := func(c echo.Content) {
			for i := range v.own().Tunnels {
				g.tunnel(i+1).answeredBy(echo.Message{Content: c}, 0)
			}
		}
		noWay := func() bool { return g.answer(echoOf("10.80.0.7", echo.Report{})).NoWay }
		for range memberAnswers {
			if !noWay() {
				t.Error("a way on, though no tunnel has been answered for a moment")
			}
			tell(echo.Content{})
			time.Sleep(memberMoment / 2) //nolint:forbidigo // synctest's clock
		}
		for _, c := range []echo.Content{{}, {Draining: true}, {NoWay: true}, {NoWay: true, Draining: true, Unused: true}, {Nodes: math.MaxUint32}, {Nodes: 1}, {}} {
			tell(c)
			if unused := g.unused(v.own(), v.peering.GatewayMode); len(unused) > 0 {
				t.Errorf("peer says %+v in all tunnels: unused are %v", c, unused)
			}
			if want := c.NoWay || g.tunnel(1).state == recovered; noWay() != want {
				t.Errorf("peer says %+v: the gateway tells its nodes that it has no way on: %t", c, noWay())
			}
		}
		v.peering.Gateways = v.peering.Gateways[:1]
		g.update(v)
		if tell(echo.Content{NoWay: true}); noWay() {
			t.Error("the only gateway tells its nodes that it has no way on")
		}
	})
}

// TestIdleGateway checks that a draining gateway may end when all live nodes and peers have reported that they do not
// use it.
func TestIdleGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		expect := func(what string, want bool) {
			t.Helper()
			if g.idle() != want {
				t.Errorf("%s: idle %t, want %t", what, !want, want)
			}
		}
		node := func(internal string, unused bool) {
			from, m := echoOf(internal, echo.Report{Internal: netip.MustParseAddr(internal)})
			m.Content.Unused = unused
			if c := g.answer(from, m); !c.Draining {
				t.Error("a node is not told that the gateway drains")
			}
		}
		peer := func(unused bool) {
			m := echo.Message{Content: echo.Content{Unused: unused}}
			if c := g.tunnel(1).answer(netip.AddrPort{}, m); !c.Draining {
				t.Error("the peer is not told that the gateway drains")
			}
			g.tunnel(1).answeredBy(echo.Message{}, 0)
		}
		g.drain()
		expect("nobody is alive", true)
		node("10.80.0.7", true)
		node("10.80.0.8", false)
		expect("one node sends", false)
		node("10.80.0.8", true)
		expect("no node sends", true)
		peer(false)
		expect("the peer sends", false)
		peer(true)
		expect("nobody sends", true)
		node("10.80.0.8", false)
		expect("a node sends again", false)
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		expect("the node is dead", true)
		peer(false)
		g.tunnel(1).silent()
		expect("the peer's gateway sends and does not answer", false)
		peer(true)
		node("10.80.0.8", true)
		expect("nobody sends", true)
		time.Sleep(time.Millisecond) //nolint:forbidigo // as above
		if !g.announceEnd() || g.announceEnd() {
			t.Error("the end is not announced once")
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
		var ended, stalled member
		ask := func() echo.Content {
			return g.answer(echoOf("10.80.0.7", echo.Report{Internal: netip.MustParseAddr("10.80.0.7")}))
		}
		for range memberAnswers {
			ended.answered(ask())
			stalled.answered(echo.Content{})
			time.Sleep(memberMoment / 2) //nolint:forbidigo // synctest's clock
		}
		g.drain()
		g.announceEnd()
		ended.answered(ask())
		stalled.silent()
		if unused := unusedOf([]standing{ended.state, stalled.state}, ""); !unused[0] || unused[1] {
			t.Errorf("unused are %v, want the one that ends", unused)
		}
	})
}
