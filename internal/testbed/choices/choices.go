// Package choices has the table of which of two members carry packets: for nodes, which choose gateways, and for
// gateways, which choose tunnels.
package choices

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/netops/echo"
)

// Messages of a member.
var (
	Fine        = echo.Content{}
	NoWay       = echo.Content{NoWay: true}
	Drains      = echo.Content{Draining: true}
	DrainsNoWay = echo.Content{Draining: true, NoWay: true}
)

// Elapse lets time pass in a bubble.
func Elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest's clock

// Passing advances the clock of a bubble, and calls happens several times a second, like echoes.
func Passing(d time.Duration, happens func()) {
	for range d / (250 * time.Millisecond) {
		happens()
		time.Sleep(250 * time.Millisecond) //nolint:forbidigo // synctest's clock
	}
}

// Chooser is a node with two gateways, or a gateway with two tunnels: members 0 and 1.
type Chooser struct {
	Answer func(member int, c echo.Content)
	Ask    func(member int, c echo.Content) // the member sends a request; nodes get none
	Lose   func(member, consecutive int)
	Silent func(member int)
	Least  int // losses after which a member counts as not answering
	Unused func() [2]bool
}

// used returns the numbers of the members that carry packets.
func (c Chooser) used() string {
	var numbers []string
	for i, is := range c.Unused() {
		if !is {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return strings.Join(numbers, " ")
}

// signal is what comes from a member every echoesEvery; number counts from 1 in each phase.
type signal func(c Chooser, member, number int)

const echoesEvery = 200 * time.Millisecond

func answering(content echo.Content) signal {
	return func(c Chooser, i, _ int) { c.Answer(i, content) }
}

// none are no messages: the member is silent after 0.4 s, and after 0.6 s its echoes count as lost.
func none(c Chooser, i, number int) {
	switch {
	case number == 3:
		c.Silent(i)
	case number > 3:
		for k := range c.Least {
			c.Lose(i, k+1)
		}
	}
}

// losing loses so many echoes in a row at once.
func losing(n int) signal {
	return func(c Chooser, i, number int) {
		for k := range n {
			if number == 1 {
				c.Lose(i, k+1)
			}
		}
	}
}

// asking sends requests, and gets no answers through.
func asking(content echo.Content) signal {
	return func(c Chooser, i, number int) { none(c, i, number); c.Ask(i, content) }
}

// both answers, and sends requests with other content.
func both(answer, request echo.Content) signal {
	return func(c Chooser, i, _ int) { c.Answer(i, answer); c.Ask(i, request) }
}

// nothing yet: not even losses are known.
func nothing(Chooser, int, int) {}

// phase is a time in which both members send something.
type phase struct {
	lasts         time.Duration
	first, second signal
}

// Run checks which members carry packets after each situation, at a "node" or a "gateway". At least one does at any
// time. In a test with noPod, a node does not know the location of the first gateway.
func Run(t *testing.T, kind string, chooser func(mode records.GatewayMode, noPod bool) Chooser) {
	t.Helper()
	for _, test := range situations() {
		want := map[string]string{"node": test.node, "gateway": test.gateway}[kind]
		bubble.Run(t, test.name, func(t *testing.T) {
			c := chooser(test.mode, test.noPod)
			for _, p := range test.phases {
				for number := range int(p.lasts / echoesEvery) {
					p.first(c, 0, number+1)
					p.second(c, 1, number+1)
					if c.used() == "" {
						t.Fatal("none carries packets")
					}
					Elapse(echoesEvery)
				}
			}
			if got := c.used(); got != want {
				t.Errorf("packets go by %s, want %s", got, want)
			}
		})
	}
}

// situation is what both members send, one phase after the other, and the members that carry packets then.
type situation struct {
	name          string
	phases        []phase
	mode          records.GatewayMode
	noPod         bool // the first gateway has none
	node, gateway string
}

const ms = time.Millisecond

var (
	yes = answering(Fine)
	up  = phase{2 * time.Second, yes, yes}
)

// situations is the table.
func situations() []situation { return slices.Concat(silences(), drains(), partitions()) }

// silences are situations of members that answer or not, or have no way on.
func silences() []situation {
	return []situation{
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

		{"no way on", []phase{up, {200 * ms, answering(NoWay), yes}}, "", false, "2", "2"},
		{"both no way on", []phase{up, {200 * ms, answering(NoWay), answering(NoWay)}}, "", false, "1 2", "1 2"},
		{"no way on, in requests only", []phase{up, {200 * ms, both(Fine, NoWay), yes}}, "", false, "1 2", "2"},
	}
}

// drains are situations in which a member drains or has ended.
func drains() []situation {
	// back is a second member that was lost for long, and answers again for less than a moment; the first goes on.
	back := func(first signal) []phase {
		return []phase{up, {4 * time.Second, yes, none}, {400 * ms, first, yes}}
	}
	return []situation{
		{"drains", []phase{up, {200 * ms, answering(Drains), yes}}, "", false, "2", "2"},
		{"both drain", []phase{up, {200 * ms, answering(Drains), answering(Drains)}}, "", false, "1 2", "1 2"},
		{"both drain, one is silent", []phase{up, {200 * ms, answering(Drains), answering(Drains)}, {600 * ms, answering(Drains), none}}, "", false, "1", "1"},
		{"drains in requests", []phase{up, {200 * ms, both(Fine, Drains), yes}}, "", false, "1 2", "2"},
		{"drains beside a silent one", []phase{up, {600 * ms, yes, none}, {200 * ms, answering(Drains), none}}, "", false, "1", "1"},
		{"drains beside one that is just back", back(answering(Drains)), "", false, "1", "1"},
		{"drains and misses one, beside one that is just back", append(back(answering(Drains)), phase{200 * ms, losing(1), yes}), "", false, "2", "2"},
		{"drains and misses one, beside a silent one", []phase{up, {600 * ms, yes, none}, {200 * ms, answering(Drains), none}, {200 * ms, losing(1), none}}, "", false, "1", "1"},
		{"ended beside a silent one", []phase{up, {200 * ms, answering(Drains), yes}, {200 * ms, answering(DrainsNoWay), yes}, {600 * ms, none, none}}, "", false, "2", "2"},
		{"ended beside one that is away for long", []phase{up, {4 * time.Second, yes, none}, {time.Second, answering(Drains), none}, {time.Second, none, none}}, "", false, "2", "2"},
		{"both ended", []phase{up, {200 * ms, answering(Drains), answering(Drains)}, {time.Second, none, none}}, "", false, "1 2", "1 2"},
		{"draining is withdrawn", []phase{up, {time.Second, answering(Drains), answering(Drains)}, {200 * ms, yes, answering(Drains)}}, "", false, "1", "1"},
		{"draining one way, beside one that is just back", []phase{up, {4 * time.Second, yes, none}, {time.Second, asking(Drains), yes}}, "", false, "2", "2"},
		{"the next pod of one that drained", []phase{up, {200 * ms, answering(Drains), yes}, {800 * ms, none, yes}, {time.Second, yes, yes}}, "", false, "2", "2"},
		{"the next pod, after a moment", []phase{up, {200 * ms, answering(Drains), yes}, {800 * ms, none, yes}, {1400 * ms, yes, yes}}, "", false, "1 2", "1 2"},
	}
}

// partitions are situations in which members reach different numbers of nodes.
func partitions() []situation {
	few, many := answering(echo.Content{Nodes: 1}), answering(echo.Content{Nodes: 2})
	return []situation{
		{"reaches fewer nodes for less than a moment", []phase{up, {time.Second, few, many}}, "", false, "1 2", "1 2"},
		{"reaches fewer nodes", []phase{up, {1400 * ms, few, many}}, "", false, "1 2", "2"},
		{"reaches fewer nodes, active-standby", []phase{up, {1400 * ms, few, many}}, records.ActiveStandby, false, "1", "2"},
		{"reaches fewer nodes than one that falls silent", []phase{up, {1400 * ms, few, many}, {600 * ms, few, none}}, "", false, "1", "1"},
		{"reaches fewer nodes than one that drains", []phase{up, {1400 * ms, few, many}, {200 * ms, few, answering(echo.Content{Nodes: 2, Draining: true})}}, "", false, "1", "1"},
		{"reaches fewer nodes, and both fall silent", []phase{up, {1400 * ms, few, many}, {600 * ms, none, none}}, "", false, "1 2", "1 2"},
		{"reaches fewer nodes than one that comes back", []phase{up, {2 * time.Second, few, none}, {1200 * ms, few, many}}, "", false, "1 2", "2"},
		{"sends no number of nodes", []phase{up, {1400 * ms, yes, many}}, "", false, "1 2", "1 2"},
		{"reaches as many nodes again", []phase{up, {1400 * ms, few, many}, {1400 * ms, many, many}}, "", false, "1 2", "1 2"},
	}
}
