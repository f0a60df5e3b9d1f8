// Package health decides the state of a peering. It is the only place with thresholds: gateways use it to decide
// which reports cannot wait, `network status` to judge them, so that both cross a threshold at the same moment.
//
// It is pure: records in, a state with its reason out. It knows neither Kubernetes nor the kernel.
package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// State is the health of a peering.
type State string

// The states.
const (
	Healthy    State = "healthy"    // packets cross both ways, from every node
	Degraded   State = "degraded"   // some do
	Connecting State = "connecting" // the peer's gateway has never answered
	Down       State = "down"       // no packets cross
	Unknown    State = "unknown"    // nothing recent is known
)

// States are all of them.
func States() []State { return []State{Healthy, Degraded, Connecting, Down, Unknown} }

// How long something seen counts. Each is longer than what one lost packet costs, and with the half second in which a
// gateway looks, and the time to write, shorter than the five seconds within which a fault is shown.
const (
	EchoSilence = 3 * time.Second // of the peer's gateway, which is asked five times a second on average, at least
	NodeSilence = 4 * time.Second // of a node, which sends an echo a second
	// GatewaySilence is that of a gateway, to which its nodes send those echoes.
	GatewaySilence = 2500 * time.Millisecond
	ProofSilence   = 4 * time.Second // of the peer's nodes, one of which a node asks every two seconds
	// handshakeLife is WireGuard's REJECT_AFTER_TIME: keys of that age carry no packet any more.
	handshakeLife = 180 * time.Second
)

// Loss is measured over LossSpan. It counts from MuchLoss on, which is what users feel, and if LossLeast echoes are
// missing: one says nothing. It is over when nothing was lost for LossClean: at fifty echoes a second, and two in a
// hundred lost, such a pause comes by chance once in a minute.
const (
	MuchLoss  = 0.02
	LossSpan  = 10 * time.Second
	LossClean = 4 * time.Second
	LossLeast = 2
)

// A gateway reports every ReportEvery, and at once what passes a threshold. Where no other machine would report its
// end, it reports every LoneReportEvery.
const (
	ReportEvery     = 10 * time.Second
	LoneReportEvery = 2 * time.Second
	// reportDelay is what a report may take to be written and read.
	reportDelay = 2500 * time.Millisecond
)

// Every is how often a gateway reports; watched says that it has witnesses on other machines.
func Every(watched bool) time.Duration {
	if watched {
		return ReportEvery
	}
	return LoneReportEvery
}

// Life is how long a report counts after which the next one comes in that time at the latest. What no gateway would
// state is ReportEvery: the statement outlives the gateway, and must not make it look alive.
func Life(every time.Duration) time.Duration {
	if every <= 0 || every > ReportEvery {
		every = ReportEvery
	}
	return every + reportDelay
}

// Late reports whether the report after one of that age is missing. Of one that is as far in the future nobody knows.
func Late(age, every time.Duration) bool { return age.Abs() >= Life(every) }

// Observation is what is known of a gateway of a peering.
type Observation struct {
	// Status is what the gateway reports; nil: it never has.
	Status *records.Status
	// Age is that of the report, negative for one of the future. It counts from when the report was seen to be written,
	// if it was, whatever the clocks.
	Age time.Duration
	// Every is how long after the report the next one comes at the latest; zero: ReportEvery.
	Every time.Duration
	// Witnesses are what nodes report of the gateway, by the node's name: "" where its path works, else the fault.
	Witnesses map[string]string
	// GatewayNode is the node on which the gateway runs; "": not known.
	GatewayNode string
	// Nodes are the names of the nodes that should take part: Ready, and able to run a helper.
	Nodes []string
	// Problem is why the gateway's pod does not run; "": none is known.
	Problem string
	MTU     int // bytes, of the largest packet that is to cross; 0: not judged
}

// JudgeAll returns the state of one side of a peering by those of its gateways, each of which carries packets of all
// nodes. altered are objects that are not as they should be, each with how.
func JudgeAll(gateways []Observation, altered []string) (State, string) {
	states, reasons := make([]State, len(gateways)), make([]string, len(gateways))
	for i, o := range gateways {
		states[i], reasons[i] = Judge(o)
	}
	state := together(states)
	if len(slices.Compact(slices.Clone(reasons))) == 1 {
		return withAltered(state, reasons[0], altered)
	}
	for i := range reasons {
		if reasons[i] != "" {
			reasons[i] = fmt.Sprintf("gateway %d: %s", i+1, reasons[i])
		}
	}
	return withAltered(state, joined(reasons...), altered)
}

// together is the state of several gateways: degraded while one carries packets.
func together(states []State) State {
	first := states[0]
	if !slices.ContainsFunc(states, func(s State) bool { return s != first }) {
		return first
	}
	if slices.ContainsFunc(states, func(s State) bool { return s == Healthy || s == Degraded }) {
		return Degraded
	}
	for _, s := range []State{Down, Unknown} {
		if slices.Contains(states, s) {
			return s
		}
	}
	return Connecting
}

// withAltered adds objects that are not as they should be.
func withAltered(state State, reason string, objects []string) (State, string) {
	if len(objects) == 0 {
		return state, reason
	}
	altered := strings.Join(objects, "; ")
	if state == Healthy { // packets still cross, but a restart may end that
		return Degraded, altered
	}
	return state, altered + "; " + reason
}

// Judge returns the state of a gateway and, unless it is healthy, the reason. All ages but the report's own are
// relative to the report, so that clocks which differ do not matter.
func Judge(o Observation) (State, string) {
	s := o.Status
	if s == nil {
		if o.Problem != "" {
			return Down, o.Problem
		}
		return Connecting, "the gateway has not reported yet"
	}
	state, seen := witnessed(o)
	if Late(o.Age, o.Every) {
		reason := fmt.Sprintf("the gateway's last report is %s old", round(o.Age))
		if o.Age < 0 {
			reason = fmt.Sprintf("the gateway's last report is from %s in the future: clocks differ", round(-o.Age))
		}
		if state == Down || o.Problem != "" {
			return Down, joined(o.Problem, seen, reason)
		}
		return Unknown, joined(reason, seen)
	}
	if f := tunnel(s, s.TunnelStatus); f.state != Healthy {
		return f.state, joined(f.text(), seen)
	}
	worst, reasons := nodes(s, o.Nodes)
	reasons = slices.Concat([]string{o.Problem}, reasons, gateway(s), []string{narrow(s, o.Nodes, o.MTU), seen})
	reason := joined(reasons...)
	switch {
	case state == Down:
		worst = Down
	case worst == Healthy && reason != "":
		worst = Degraded
	}
	return worst, reason
}

// witnessed is what the witnesses see: Down where all of them miss the gateway, or what is behind it. A node whose
// echoes, or whose answers of the peer, the gateway itself misses is none: its path is the gateway's to report. The
// gateway's own node is one only where there is no other: when it is lost, what it reported last says that all is well.
func witnessed(o Observation) (State, string) {
	var others, own []string // what each reports, "" where its path works
	for _, name := range o.Nodes {
		fault, ok := o.Witnesses[name]
		if n, _ := Node(o.Status, name); !ok || !echoes(o.Status, n) || !proven(o.Status, n) {
			continue
		}
		if fault != "" {
			fault = fmt.Sprintf("node %s reports: %s", name, fault)
		}
		if name == o.GatewayNode {
			own = append(own, fault)
		} else {
			others = append(others, fault)
		}
	}
	if len(others) == 0 {
		others = own
	}
	faults := slices.DeleteFunc(slices.Clone(others), func(fault string) bool { return fault == "" })
	switch len(faults) {
	case 0:
		return Healthy, ""
	case len(others):
		return Down, strings.Join(faults, "; ")
	}
	return Degraded, strings.Join(faults, "; ")
}

func joined(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(r string) bool { return r == "" }), "; ")
}

// round is an age as people say it.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
