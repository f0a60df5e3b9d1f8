// Package health determines the state of a peering. It is the only place with thresholds: gateways use it to decide
// which reports to send immediately, `network status` to evaluate them, so that both apply the same thresholds.
//
// It is pure: it maps records to a state and a reason. It depends neither on Kubernetes nor on the kernel.
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
	Healthy    State = "healthy"    // packets cross in both directions, from every node
	Degraded   State = "degraded"   // packets of some nodes cross
	Connecting State = "connecting" // the peer's gateway has never answered
	Down       State = "down"       // no packets cross
	Unknown    State = "unknown"    // no recent information
)

// States returns all states.
func States() []State { return []State{Healthy, Degraded, Connecting, Down, Unknown} }

// How long an observation is valid. Each duration is longer than the effect of one lost packet. With the half second
// between a gateway's checks and the time to write a report, it is shorter than the five seconds within which status
// must show a fault.
const (
	EchoSilence = 3 * time.Second // of the peer's gateway, which gets at least five echoes a second on average
	NodeSilence = 4 * time.Second // of a node, which sends an echo a second
	// GatewaySilence applies to a gateway, to which its nodes send those echoes.
	GatewaySilence = 2500 * time.Millisecond
	ProofSilence   = 4 * time.Second // of the peer's nodes; a node probes one of them every two seconds
	// handshakeLife is WireGuard's REJECT_AFTER_TIME: older keys carry no packets.
	handshakeLife = 180 * time.Second
)

// Loss is measured over LossSpan. It is reported from MuchLoss on, which users notice, and if at least LossLeast echoes
// are missing, because one is not significant. It ends after LossClean without loss. At fifty echoes a second and a
// loss of two percent, such a pause occurs by chance once a minute.
const (
	MuchLoss  = 0.02
	LossSpan  = 10 * time.Second
	LossClean = 4 * time.Second
	LossLeast = 2
)

// A gateway reports every ReportEvery, and immediately if a threshold is crossed. If no other machine would report its
// failure, it reports every LoneReportEvery.
const (
	ReportEvery     = 10 * time.Second
	LoneReportEvery = 2 * time.Second
	// reportDelay is the time in which a report is written and read.
	reportDelay = 2500 * time.Millisecond
)

// Every returns the report interval of a gateway; watched is set if it has witnesses on other machines.
func Every(watched bool) time.Duration {
	if watched {
		return ReportEvery
	}
	return LoneReportEvery
}

// Life returns how long a report is valid if the next one is due after that interval. An interval that no gateway would
// announce is replaced with ReportEvery: the announcement outlives the gateway, and must not make it appear alive.
func Life(every time.Duration) time.Duration {
	if every <= 0 || every > ReportEvery {
		every = ReportEvery
	}
	return every + reportDelay
}

// Late reports whether the report that follows one of that age is overdue. A report that is equally far in the future,
// by its clock, is treated the same, because its age is unknown.
func Late(age, every time.Duration) bool { return age.Abs() >= Life(every) }

// Observation has all inputs about a gateway of a peering.
type Observation struct {
	// Status is the gateway's report; nil: none yet.
	Status *records.Status
	// Age is the age of the report, negative for a time in the future. If the writing of the report was observed, it is
	// measured from that moment, independent of clocks.
	Age time.Duration
	// Every is the time after the report at which the next one is due; zero: ReportEvery.
	Every time.Duration
	// Witnesses are the nodes' reports about the gateway, by the node's name: "" if the path works, else the fault.
	Witnesses map[string]string
	// GatewayNode is the node on which the gateway runs; "": not known.
	GatewayNode string
	// Nodes are the names of the nodes that should take part: Ready, and able to run a helper.
	Nodes []string
	// Problem is the reason why the gateway's pod does not run; "": none known.
	Problem string
	MTU     int // bytes, of the largest packet that must cross; 0: not checked
}

// JudgeAll returns the state of a peering in one cluster from its gateways, each of which carries packets of all nodes.
// altered lists objects that differ from the desired state, with the difference.
func JudgeAll(gateways []Observation, altered []string) (State, string) {
	states, reasons := make([]State, len(gateways)), make([]string, len(gateways))
	for i, o := range gateways {
		states[i], reasons[i] = Judge(o)
	}
	state := combine(states)
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

// combine returns the state of several gateways: degraded as long as one carries packets.
func combine(states []State) State {
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

// withAltered adds objects that differ from the desired state.
func withAltered(state State, reason string, objects []string) (State, string) {
	if len(objects) == 0 {
		return state, reason
	}
	altered := strings.Join(objects, "; ")
	if state == Healthy { // packets still cross, but a restart may stop them
		return Degraded, altered
	}
	return state, altered + "; " + reason
}

// Judge returns the state of a gateway and, unless it is healthy, the reason. All ages except the report's own are
// relative to the report's time, so that they do not depend on synchronized clocks.
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

// witnessed returns the state according to the witnesses: Down if all of them miss the gateway, or the peer behind it.
// A node from which the gateway misses echoes or answers of the peer is not a witness, because the gateway reports that
// path itself. The gateway's own node is a witness only if there is no other: if it is lost, its last report is that
// the path works.
func witnessed(o Observation) (State, string) {
	var others, own []string // the report of each, "" if its path works
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

// round rounds an age for display.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
