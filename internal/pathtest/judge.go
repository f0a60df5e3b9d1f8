package pathtest

import (
	"fmt"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/seconds"
)

// Kind is the kind of a sender or receiver.
type Kind string

// The kinds.
const (
	Pod       Kind = "pod"
	Node      Kind = "node"
	ClusterIP Kind = probe.ClusterIP // of a Service
	NodePort  Kind = probe.NodePort
)

// End is the source or destination of packets.
type End struct {
	Cluster string `json:"cluster"`
	Kind    Kind   `json:"kind"`
	Node    string `json:"node,omitempty"` // "": of any endpoint of a Service
}

func (e End) String() string {
	switch e.Kind {
	case Pod:
		return fmt.Sprintf("pod on %s of %s", e.Node, e.Cluster)
	case Node:
		return fmt.Sprintf("node %s of %s", e.Node, e.Cluster)
	}
	return fmt.Sprintf("%s Service with endpoints in %s", e.Kind, e.Cluster)
}

// State is the result of a check.
type State string

// The states.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// source is the check of the source address that the target observes.
const source probe.Check = "source"

// Check is a check of one path.
type Check struct {
	From     End         `json:"from"`
	To       End         `json:"to"`
	Name     probe.Check `json:"check"`
	State    State       `json:"state"`
	Seen     string      `json:"seen,omitempty"`
	Expected string      `json:"expected,omitempty"`
	// Gap is the longest time without an answer on the open connection.
	Gap seconds.Duration `json:"gapSeconds,omitzero"`
}

// report is the report of one probe.
type report struct {
	from    End
	address netip.Addr // of the pod; of a node, in the overlay
	results []probe.Result
}

// expectations are the expected results of checks.
var expectations = map[probe.Check]string{
	probe.TCP:        "100 kB, unaltered",
	probe.UDP:        "an answer",
	probe.Ping:       "an answer",
	probe.FullSize:   "an answer to a packet of the path MTU",
	probe.Oversize:   "an error of the kernel: message too long",
	probe.Fragments:  "an answer to a datagram in fragments",
	probe.Connection: "no break",
}

// judge compares the report of a side's probe with the records of that side.
func judge(s, peer *side, r report, hold time.Duration) []Check {
	var checks []Check
	for _, result := range r.results {
		c := Check{From: r.from, To: End{Cluster: peer.fabric.Name, Kind: Pod, Node: result.Target}}
		if result.Target == probe.ClusterIP || result.Target == probe.NodePort {
			c.To = End{Cluster: peer.fabric.Name, Kind: Kind(result.Target)}
		}
		for _, c.Name = range probe.Checks(result.Target, hold) {
			checks = append(checks, outcome(c, result))
		}
		c.Name = source
		checks = append(checks, s.judgeSource(c, r.address, result.Source))
	}
	return checks
}

// outcome evaluates a check whose result the probe knows.
func outcome(c Check, r probe.Result) Check {
	c.State = Passed
	if why, ok := r.Skipped[c.Name]; ok {
		c.State, c.Seen = Skipped, why
	}
	if seen, ok := r.Failed[c.Name]; ok {
		c.State, c.Seen, c.Expected = Failed, seen, expectations[c.Name]
	}
	if c.Name == probe.Connection {
		c.Gap = seconds.Duration(r.Gap)
	}
	return c
}

// judgeSource compares the sender's address, as observed by the target, with its translation.
func (s *side) judgeSource(c Check, sender, observed netip.Addr) Check {
	want, err := s.translator.Export(sender)
	switch {
	case err != nil:
		c.State, c.Seen, c.Expected = Failed, err.Error(), "an address that is translated"
	case !observed.IsValid():
		c.State, c.Seen = Skipped, "no answer"
	case observed == want.Translated, c.To.Kind == ClusterIP && s.ofNode(c.From.Node) == observed:
		// kube-proxy may masquerade packets to a ClusterIP.
		c.State = Passed
	default:
		c.State, c.Seen, c.Expected = Failed, observed.String(), want.Translated.String()
	}
	return c
}

// ofNode returns the address of a node of this side at the peer; zero if unknown.
func (s *side) ofNode(name string) netip.Addr {
	a, _ := s.translator.Export(s.internal[name])
	return a.Translated
}
