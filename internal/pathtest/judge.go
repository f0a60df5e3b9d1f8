package pathtest

import (
	"fmt"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/pathtest/probe"
)

// Kind is what sends or receives.
type Kind string

// The kinds.
const (
	Pod       Kind = "pod"
	Node      Kind = "node"
	ClusterIP Kind = probe.ClusterIP // a Service's
	NodePort  Kind = probe.NodePort
)

// End is where packets come from, or go to.
type End struct {
	Cluster string `json:"cluster"`
	Kind    Kind   `json:"kind"`
	Node    string `json:"node,omitempty"` // "": that of whatever endpoint a Service chooses
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

// State is how a check ended.
type State string

// The states.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// source is the check of the address that the far end sees.
const source probe.Check = "source"

// Check is a check of one path.
type Check struct {
	From     End         `json:"from"`
	To       End         `json:"to"`
	Name     probe.Check `json:"check"`
	State    State       `json:"state"`
	Seen     string      `json:"seen,omitempty"`
	Expected string      `json:"expected,omitempty"`
	// Gap is the longest time without an answer on a connection that was kept open.
	Gap time.Duration `json:"gapNanoseconds,omitempty"`
}

// report is what a probe has seen, and which one it is.
type report struct {
	from    End
	address netip.Addr // of the pod; in the overlay, of a node
	results []probe.Result
}

// expectations say what each check should see.
var expectations = map[probe.Check]string{
	probe.TCP:        "100 kB, unaltered",
	probe.UDP:        "an answer",
	probe.Ping:       "an answer",
	probe.FullSize:   "an answer to a packet of the path MTU",
	probe.Oversize:   "an error of the kernel: message too long",
	probe.Fragments:  "an answer to a datagram in fragments",
	probe.Connection: "no break",
}

// judge compares what a probe of a side reports with what the records of that side promise.
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

// outcome is that of a check of which the probe itself knows the answer.
func outcome(c Check, r probe.Result) Check {
	c.State = Passed
	if why, ok := r.Skipped[c.Name]; ok {
		c.State, c.Seen = Skipped, why
	}
	if seen, ok := r.Failed[c.Name]; ok {
		c.State, c.Seen, c.Expected = Failed, seen, expectations[c.Name]
	}
	if c.Name == probe.Connection {
		c.Gap = r.Gap
	}
	return c
}

// judgeSource compares the address of a sender, as the far end saw it, with its translation.
func (s *side) judgeSource(c Check, sender, seen netip.Addr) Check {
	want, err := s.translator.Export(sender)
	switch {
	case err != nil:
		c.State, c.Seen, c.Expected = Failed, err.Error(), "an address that is translated"
	case !seen.IsValid():
		c.State, c.Seen = Skipped, "no answer"
	case seen == want.Translated, c.To.Kind == ClusterIP && s.ofNode(c.From.Node) == seen: // kube-proxy may masquerade
		c.State = Passed
	default:
		c.State, c.Seen, c.Expected = Failed, seen.String(), want.Translated.String()
	}
	return c
}

// ofNode is the address of a node of this side as the peer sees it; the zero value: not known.
func (s *side) ofNode(name string) netip.Addr {
	a, _ := s.translator.Export(s.internal[name])
	return a.Translated
}
