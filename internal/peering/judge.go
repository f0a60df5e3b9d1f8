package peering

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// State is how a peering does.
type State string

// The states.
const (
	Healthy    State = "healthy"    // packets cross both ways, from every node
	Degraded   State = "degraded"   // some do
	Connecting State = "connecting" // no gateway of the peer has answered yet
	Down       State = "down"       // none do, though they did
	Unknown    State = "unknown"    // nothing recent is known
)

// Ages from which on something seen counts no more. A report is written every ten seconds at least, at once when
// something fails.
const (
	staleReport = 30 * time.Second
	// staleHandshake is WireGuard's own REJECT_AFTER_TIME: keys of that age carry no packet any more.
	staleHandshake = 180 * time.Second
	staleEcho      = 5 * time.Second
	staleNodeEcho  = 10 * time.Second
	staleProof     = 90 * time.Second
	// muchLoss is the share of lost echoes from which on a link is of no use.
	muchLoss = 0.5
)

// Observation is what is known of one side of a peering.
type Observation struct {
	// Status is what the gateway reports; nil: it never has.
	Status *records.Status
	// Nodes are the names of the nodes that should take part: Ready, with a helper.
	Nodes []string
	// Problem is why the gateway's pod does not run; "": nothing tells that it does not.
	Problem string
	MTU     int // bytes, of the largest packet that is to cross; 0: none is judged
	// Altered are objects that are not as they should be, each with how.
	Altered []string
	Now     time.Time
}

// Judge tells the state of a peering and, unless it is healthy, the reason. All ages but the report's own are
// relative to the report, so that clocks which differ do not matter.
func Judge(o Observation) (State, string) {
	state, reason := judgePath(o)
	if len(o.Altered) == 0 {
		return state, reason
	}
	altered := strings.Join(o.Altered, "; ")
	if state == Healthy { // it still goes on as it was, and may not survive a restart
		return Degraded, altered
	}
	return state, altered + "; " + reason
}

// judgePath looks at what gateway and nodes report.
func judgePath(o Observation) (State, string) {
	s := o.Status
	if s == nil {
		if o.Problem != "" {
			return Down, o.Problem
		}
		return Connecting, "the gateway has not reported yet"
	}
	if age := o.Now.Sub(s.Time); age >= staleReport {
		reason := fmt.Sprintf("the last report is %s old", roundAge(age))
		if o.Problem != "" {
			return Down, o.Problem + "; " + reason
		}
		return Unknown, reason
	}
	if state, reason := judgeTunnel(s); state != Healthy {
		return state, reason
	}
	if len(s.Failed) > 0 {
		return Degraded, "gateway: " + strings.Join(s.Failed, "; ")
	}
	return judgeSizes(o)
}

// judgeSizes looks at the ways of the nodes, and at what fits them.
func judgeSizes(o Observation) (State, string) {
	state, reason := judgeNodes(o.Status, o.Nodes)
	narrow := ""
	if o.MTU != 0 {
		narrow = narrowReason(o.Status, o.Nodes, o.MTU)
	}
	switch {
	case narrow == "":
		return state, reason
	case state == Healthy:
		return Degraded, narrow
	}
	return state, narrow + "; " + reason
}

// judgeTunnel looks at the way between the gateways.
func judgeTunnel(s *records.Status) (State, string) {
	switch {
	case s.LastHandshake.IsZero():
		if len(s.Failed) > 0 {
			return Connecting, "gateway: " + strings.Join(s.Failed, "; ")
		}
		return Connecting, "no handshake yet" + at(s)
	case s.Time.Sub(s.LastHandshake) >= staleHandshake:
		return Down, fmt.Sprintf("the last handshake%s was %s ago", at(s), roundAge(s.Time.Sub(s.LastHandshake)))
	case s.LastEcho.IsZero():
		return Connecting, "the peer's gateway has answered no echo yet"
	case s.Time.Sub(s.LastEcho) >= staleEcho:
		return Down, fmt.Sprintf("the peer's gateway answered last %s ago", roundAge(s.Time.Sub(s.LastEcho)))
	case s.Loss >= muchLoss:
		return Degraded, fmt.Sprintf("%.0f %% of the echoes between the gateways are lost", s.Loss*100)
	}
	return Healthy, ""
}

// judgeNodes looks at the ways of the nodes, to their gateway and through it to nodes of the peer.
func judgeNodes(s *records.Status, nodes []string) (State, string) {
	if len(nodes) == 0 {
		return Degraded, "no node is Ready"
	}
	var silent, unproven, reasons []string
	for _, name := range nodes {
		n, _ := nodeStatus(s, name)
		if n.Refused != "" {
			reasons = append(reasons, "node "+name+" refuses it: "+n.Refused)
		}
		switch {
		case !echoes(s, n):
			silent = append(silent, name)
		case !proven(s, n):
			unproven = append(unproven, name)
		}
	}
	if len(silent) > 0 {
		reasons = append(reasons, "no echo between gateway and node "+strings.Join(silent, ", "))
	}
	if len(unproven) > 0 {
		reasons = append(reasons, "no answer from nodes of the peer to node "+strings.Join(unproven, ", "))
	}
	switch {
	case len(reasons) == 0:
		return Healthy, ""
	case len(silent)+len(unproven) == len(nodes):
		// Also the state of the first seconds: the gateways hear each other before the nodes do.
		return Down, strings.Join(reasons, "; ")
	}
	return Degraded, strings.Join(reasons, "; ")
}

// nodesReady counts the nodes whose packets cross.
func nodesReady(s *records.Status, nodes []string) int {
	count := 0
	for _, name := range nodes {
		if n, ok := nodeStatus(s, name); ok && echoes(s, n) && proven(s, n) {
			count++
		}
	}
	return count
}

// nodeStatus returns what a report says of a node.
func nodeStatus(s *records.Status, name string) (records.NodeStatus, bool) {
	if s == nil {
		return records.NodeStatus{}, false
	}
	i := slices.IndexFunc(s.Nodes, func(n records.NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return records.NodeStatus{}, false
	}
	return s.Nodes[i], true
}

func echoes(s *records.Status, n records.NodeStatus) bool {
	return !n.LastEcho.IsZero() && s.Time.Sub(n.LastEcho) < staleNodeEcho
}

func proven(s *records.Status, n records.NodeStatus) bool {
	return !n.LastProof.IsZero() && s.Time.Sub(n.LastProof) < staleProof
}

// at is the endpoint in a sentence.
func at(s *records.Status) string {
	if !s.Endpoint.IsValid() {
		return ""
	}
	return " with " + s.Endpoint.String()
}

// roundAge is an age as people say it.
func roundAge(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
