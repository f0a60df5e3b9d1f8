package membership

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/netops/echo"
)

// misses are the losses after which a member of these tests does not answer.
const misses = 3

// TestMember checks that a member is usable after a moment of answers, and not when it is silent or announces that it
// cannot forward.
func TestMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		m := Member{Wake: wake}
		expect := func(what string, want Standing, news bool) {
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
		pass := func() { time.Sleep(Moment / 2) } //nolint:forbidigo // synctest's clock
		expect("before any answer", Gone, false)
		m.Answered(echo.Content{}, time.Now())
		expect("first answer", Recovered, true)
		for range 10 {
			m.Answered(echo.Content{}, time.Now())
		}
		expect("many answers at once", Recovered, false)
		pass()
		m.Answered(echo.Content{}, time.Now())
		expect("after half a moment", Recovered, false)
		pass()
		m.Answered(echo.Content{}, time.Now())
		expect("after a moment", Usable, true)
		m.Answered(echo.Content{Draining: true}, time.Now())
		expect("draining", Draining, true)
		m.Answered(echo.Content{Draining: true, NoWay: true}, time.Now())
		expect("draining without a way on", Finished, true)
		m.Answered(echo.Content{NoWay: true}, time.Now())
		expect("no way on", Down, true)
		m.Answered(echo.Content{}, time.Now())
		expect("a way on again", Recovered, true)
		pass()
		pass()
		m.Answered(echo.Content{}, time.Now())
		expect("two answers", Recovered, false)
		m.Missed(2, 3, time.Now())
		expect("two lost", Recovered, false)
		m.Missed(3, 3, time.Now())
		expect("silent", Down, true)
		m.Announced(echo.Content{}, time.Now())
		expect("what it asks is no answer", Down, false)
		for range GoneAfter / Moment {
			pass()
			pass()
			m.Missed(4, 3, time.Now())
		}
		expect("silent for long", Gone, true)
		for range Answers {
			m.Answered(echo.Content{}, time.Now())
			pass()
			pass()
		}
		m.Answered(echo.Content{}, time.Now())
		expect("back", Usable, true)
		m.Silent(time.Now())
		expect("its answers stay away", Down, true)
		m.Missed(1, 3, time.Now())
		expect("and one is lost", Down, false)
		m.Answered(echo.Content{Draining: true}, time.Now())
		expect("it drains from its first answer on", Recovered, true)
		m.Missed(1, 3, time.Now())
		expect("it drains, and one is lost", Ending, true)
		m.Answered(echo.Content{Draining: true}, time.Now())
		expect("it still drains", Recovered, true)
		m.Missed(1, 3, time.Now())
		expect("one is lost again", Ending, true)
		m.Missed(3, 3, time.Now())
		expect("it has ended", Finished, true)
		m.Announced(echo.Content{}, time.Now())
		expect("another one in its place", Gone, true)
		m.Answered(echo.Content{Draining: true}, time.Now())
		m.Missed(1, 3, time.Now())
		expect("one that drains", Ending, true)
		m.Answered(echo.Content{}, time.Now())
		expect("another one in its place, at once", Gone, true)
	})
}

// TestDrainingBesideTheDead checks that packets stay with a draining gateway after one lost echo if the other gateway
// is dead.
func TestDrainingBesideTheDead(t *testing.T) {
	alive, dead := Member{}, Member{}
	alive.Answered(echo.Content{Draining: true}, time.Now())
	dead.Missed(misses, misses, time.Now())
	alive.Missed(1, misses, time.Now())
	alive.Silent(time.Now())
	if unused := Unused([]Standing{alive.state, dead.state}, false); unused[0] {
		t.Error("packets go by the gateway that is dead, not by the one that drains")
	}
}

// TestNewBesideTheStalled checks that packets stay with the only gateway while it gets no CPU time, if a new gateway is
// silent or cannot forward yet.
func TestNewBesideTheStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second Member
		for range Answers {
			first.Answered(echo.Content{}, time.Now())
			time.Sleep(Moment / 2) //nolint:forbidigo // synctest's clock
		}
		expect := func(what string) {
			t.Helper()
			if unused := Unused([]Standing{first.state, second.state}, false); unused[0] || !unused[1] {
				t.Errorf("%s: unused are %v", what, unused)
			}
		}
		first.Missed(misses, misses, time.Now())
		expect("the new one has never answered")
		second.Answered(echo.Content{NoWay: true}, time.Now())
		expect("the new one has no way on")
		first.Announced(echo.Content{NoWay: true}, time.Now())
		expect("neither has a way on")
	})
}

// TestUnused checks that the best remaining members carry packets, whatever their standing.
func TestUnused(t *testing.T) {
	all := func(s ...Standing) []Standing { return s }
	for _, test := range []struct {
		members []Standing
		standby bool
		used    []int
	}{
		{all(Down), false, []int{0}},
		{all(Down, Down), false, []int{0, 1}},
		{all(Down, Recovered), false, []int{1}},
		{all(Draining, Recovered), false, []int{0}},
		{all(Finished, Down), false, []int{1}},
		{all(Finished, Gone), false, []int{1}},
		{all(Gone, Gone), false, []int{0, 1}},
		{all(Gone, Down), false, []int{1}},
		{all(Ending, Down), false, []int{0}},
		{all(Ending, Recovered), false, []int{1}},
		{all(Finished, Finished), false, []int{0, 1}},
		{all(Draining, Usable, Down, Usable), false, []int{1, 3}},
		{all(Draining, Usable, Down, Usable), true, []int{1}},
		{all(Down, Down), true, []int{0}},
	} {
		var used []int
		for i, unused := range Unused(test.members, test.standby) {
			if !unused {
				used = append(used, i)
			}
		}
		if !slices.Equal(used, test.used) {
			t.Errorf("of %v, standby %t, used are %v, want %v", test.members, test.standby, used, test.used)
		}
	}
}

// TestHeldMemberIsNotUsable checks that a held member stays recovered, but not against a silence or an end.
func TestHeldMemberIsNotUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Member
		m.Answered(fine, time.Now())
		m.Hold(true, time.Now())
		answers(&m)
		if m.Standing() != Recovered {
			t.Errorf("a held member that answers is %s", standingNames[m.Standing()])
		}
		m.Silent(time.Now())
		if m.Standing() != Down {
			t.Errorf("a held member that is silent is %s", standingNames[m.Standing()])
		}
		answers(&m)
		m.Hold(false, time.Now())
		if m.Standing() != Usable {
			t.Errorf("a member that is no longer held is %s", standingNames[m.Standing()])
		}
	})
}
