package membership

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/netops/echo"
)

// Messages of a member.
var (
	fine        = echo.Content{}
	noWay       = echo.Content{NoWay: true}
	drains      = echo.Content{Draining: true}
	drainsNoWay = echo.Content{Draining: true, NoWay: true}
)

// standingNames are the columns' words for standings.
var standingNames = map[Standing]string{
	Finished: "finished", Gone: "gone", Down: "down", Ending: "ending", Recovered: "recovered", Draining: "draining", Usable: "usable",
}

// elapse lets time pass in a bubble.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest's clock

// answers makes a member usable.
func answers(m *Member) {
	for range Answers {
		m.Answered(fine, time.Now())
		elapse(Moment / 2)
	}
}

// memberEvents are the columns of the table below, in their order.
var memberEvents = []struct {
	name    string
	happens func(m *Member)
}{
	{"an answer", func(m *Member) { m.Answered(fine, time.Now()) }},
	{"an answer: no way on", func(m *Member) { m.Answered(noWay, time.Now()) }},
	{"an answer: it drains", func(m *Member) { m.Answered(drains, time.Now()) }},
	{"an answer: it drains, no way on", func(m *Member) { m.Answered(drainsNoWay, time.Now()) }},
	{"a request", func(m *Member) { m.Announced(fine, time.Now()) }},
	{"a request: no way on", func(m *Member) { m.Announced(noWay, time.Now()) }},
	{"a request: it drains", func(m *Member) { m.Announced(drains, time.Now()) }},
	{"one loss", func(m *Member) { m.Missed(1, misses, time.Now()) }},
	{"two losses", func(m *Member) { m.Missed(2, misses, time.Now()) }},
	{"three losses", func(m *Member) { m.Missed(misses, misses, time.Now()) }},
	{"silence", func(m *Member) { m.Silent(time.Now()) }},
}

// TestEachEventInEachStanding checks to which standing each event leads from each situation, and that a pass is
// triggered exactly when it changes. Each row has a result for each of memberEvents, which happens after some time.
func TestEachEventInEachStanding(t *testing.T) {
	for _, test := range []struct {
		name   string
		begin  func(m *Member)
		later  time.Duration
		is     string
		events string
	}{
		{"it never answered", func(*Member) {}, 0, "gone",
			"recovered gone recovered finished gone gone finished gone gone gone gone"},
		{"it answered once", func(m *Member) { m.Answered(fine, time.Now()) }, 0, "recovered",
			"recovered down recovered finished recovered down recovered recovered recovered down down"},
		{"it answered twice in a moment", func(m *Member) { m.Answered(fine, time.Now()); elapse(Moment); m.Answered(fine, time.Now()) }, 0, "recovered",
			"usable down draining finished recovered down recovered recovered recovered down down"},
		{"it answered three times at once, a moment ago", func(m *Member) {
			m.Answered(fine, time.Now())
			m.Answered(fine, time.Now())
			m.Answered(fine, time.Now())
		}, Moment, "recovered",
			"usable down draining finished usable down draining usable usable down down"},
		{"it is usable", answers, 0, "usable",
			"usable down draining finished usable down draining usable usable down down"},
		{"it was usable, for long no answer", answers, GoneAfter, "usable",
			"usable gone draining finished usable gone draining usable usable gone gone"},
		{"it was usable, and answered last just before the limit", func(m *Member) { answers(m); m.Answered(fine, time.Now()) }, GoneAfter - time.Millisecond, "usable",
			"usable down draining finished usable down draining usable usable down down"},
		{"it was usable, and answered last at the limit", func(m *Member) { answers(m); m.Answered(fine, time.Now()) }, GoneAfter, "usable",
			"usable gone draining finished usable gone draining usable usable gone gone"},
		{"it drains", func(m *Member) { answers(m); m.Answered(drains, time.Now()) }, 0, "draining",
			"usable down draining finished usable down draining ending ending finished ending"},
		{"it drains from its first answer on", func(m *Member) { m.Answered(drains, time.Now()) }, 0, "recovered",
			"recovered down recovered finished recovered down recovered ending ending finished ending"},
		{"it drains, and one is lost", func(m *Member) { answers(m); m.Answered(drains, time.Now()); m.Missed(1, misses, time.Now()) }, 0, "ending",
			"gone gone draining finished gone gone ending ending ending finished ending"},
		{"it has drained, and three are lost", func(m *Member) { answers(m); m.Answered(drains, time.Now()); m.Missed(misses, misses, time.Now()) }, 0, "finished",
			"gone gone recovered finished gone gone finished finished finished finished finished"},
		{"it has drained, and has no way on", func(m *Member) { answers(m); m.Answered(drainsNoWay, time.Now()) }, 0, "finished",
			"recovered down recovered finished down down finished finished finished finished finished"},
		{"it never answered, and its request drains", func(m *Member) { m.Announced(drains, time.Now()) }, 0, "finished",
			"recovered gone recovered finished gone gone finished finished finished finished finished"},
		{"it is silent", func(m *Member) { answers(m); m.Silent(time.Now()) }, 0, "down",
			"recovered down recovered finished down down finished down down down down"},
		{"it has no way on", func(m *Member) { answers(m); m.Answered(noWay, time.Now()) }, 0, "down",
			"recovered down recovered finished down down finished down down down down"},
		{"it is silent for long", func(m *Member) { answers(m); m.Silent(time.Now()) }, GoneAfter, "down",
			"recovered gone recovered finished gone gone finished gone gone gone gone"},
		{"another pod is in its place", func(m *Member) {
			answers(m)
			m.Answered(drains, time.Now())
			m.Missed(1, misses, time.Now())
			m.Answered(fine, time.Now())
		}, 0, "gone",
			"recovered gone recovered finished gone gone finished gone gone gone gone"},
	} {
		if n := len(strings.Fields(test.events)); n != len(memberEvents) {
			t.Errorf("%s: %d results of %d events", test.name, n, len(memberEvents))
		}
		for i, want := range strings.Fields(test.events) {
			event := memberEvents[i]
			bubble.Run(t, test.name+", then "+event.name, func(t *testing.T) {
				wake := make(chan struct{}, 1)
				m := Member{Wake: wake}
				test.begin(&m)
				if got := standingNames[m.state]; got != test.is {
					t.Fatalf("the standing is %s before the event, want %s", got, test.is)
				}
				elapse(test.later)
				before := m.state
				select {
				case <-wake:
				default:
				}
				event.happens(&m)
				if got := standingNames[m.state]; got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if woken := len(wake) == 1; woken != (m.state != before) {
					t.Errorf("from %s to %s: a pass is triggered: %t", standingNames[before], standingNames[m.state], woken)
				}
			})
		}
	}
}
