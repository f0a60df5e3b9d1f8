// Package health determines the state of a peering. It is the only place with thresholds: gateways use it to decide
// which reports to send immediately, `network status` to evaluate them, so that both apply the same thresholds.
//
// It is pure: it maps records to findings, from which a state and its reason follow. It depends neither on Kubernetes
// nor on the kernel. Each kind of finding is one declaration, in the file of its layer: see Kind.
package health

import (
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
	// Transport is the peering's setting; "": not known.
	Transport records.Transport
	MTU       int // bytes, of the largest packet that must cross; 0: not checked
}

// Together joins what Gateway returns for each gateway of a peering. Each carries packets of all nodes: the peering is
// degraded as long as one of them does.
func Together(each [][]Finding) (findings []Finding) {
	carries := false
	for i, own := range each {
		for _, f := range own {
			f.Subject.Gateway = i + 1
			findings = append(findings, f)
		}
		state := StateOf(own)
		carries = carries || state == Healthy || state == Degraded
	}
	if carries {
		atMost(levelDegraded, findings)
	}
	return findings
}

// Judge returns the state of a gateway and, unless it is healthy, the reason.
func Judge(o Observation) (State, string) {
	findings := Gateway(o)
	return StateOf(findings), Reason(findings, 1)
}

// OfObject returns a finding about an object that is not as desired. Packets still cross, but a restart may stop them.
func OfObject(code Code, text string) Finding {
	return Finding{Code: code, Level: levelDegraded, Text: text}
}

// round rounds an age for display.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
