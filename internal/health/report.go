package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// The overhead of encapsulation, in bytes.
const (
	OverlayOverhead = 50 // IP 20, UDP 8, VXLAN or Geneve 8, Ethernet 14
	TunnelOverhead  = 80 // IPv6 40, UDP 8, WireGuard 32; over IPv4 it is 20 less
	// tunnelOverheadLeast is TunnelOverhead if the tunnel uses IPv4 on its whole path.
	tunnelOverheadLeast = TunnelOverhead - 20
)

// finding is the evaluation of a part of the path. The age is separate from the rest of the reason: its growth does not
// trigger a report.
type finding struct {
	state  State
	reason string
	age    time.Duration // 0: not relevant
}

func (f finding) text() string {
	if f.age == 0 {
		return f.reason
	}
	return fmt.Sprintf("%s %s ago", f.reason, round(f.age))
}

// TunnelMissing returns the reason why the gateways do not reach each other; "" if they do. A nil report means none
// yet.
func TunnelMissing(s *records.Status) string {
	if s == nil {
		_, reason := Judge(Observation{})
		return reason
	}
	return tunnel(s, s.TunnelStatus).text()
}

// Tunnel returns the state of one tunnel in a report and, unless it is healthy, the reason.
func Tunnel(s *records.Status, t records.TunnelStatus) (State, string) {
	f := tunnel(s, t)
	return f.state, f.text()
}

// HasKeys reports whether a tunnel has session keys of WireGuard that have not expired.
func HasKeys(s *records.Status, t records.TunnelStatus) bool {
	return !t.LastHandshake.IsZero() && s.Time.Sub(t.LastHandshake) < handshakeLife
}

// tunnel evaluates the path between two gateways. Answers take precedence over handshakes, because a renewal of the
// tunnel resets the latter.
func tunnel(s *records.Status, t records.TunnelStatus) finding {
	with := ""
	if t.Endpoint.IsValid() {
		with = " with " + t.Endpoint.String()
	}
	switch echo, handshake := s.Time.Sub(t.LastEcho), s.Time.Sub(t.LastHandshake); {
	case !t.LastEcho.IsZero() && echo < EchoSilence:
		return finding{state: Healthy}
	case !t.LastEcho.IsZero():
		return finding{Down, "the peer's gateway answered last", echo}
	case t.LastHandshake.IsZero() && len(s.Failed) > 0:
		return finding{state: Connecting, reason: "gateway: " + strings.Join(s.Failed, "; ")}
	case t.LastHandshake.IsZero():
		return finding{state: Connecting, reason: "no handshake yet" + with}
	case handshake >= handshakeLife:
		return finding{Down, "the last handshake" + with + " was", handshake}
	}
	return finding{state: Connecting, reason: "the peer's gateway has answered no echo yet"}
}

// gateway returns the faults of a gateway that reaches a gateway of the peer.
func gateway(s *records.Status) []string {
	var reasons []string
	all := s.AllTunnels()
	for i, t := range all {
		with := ""
		if len(all) > 1 {
			with = fmt.Sprintf("tunnel to gateway %d of the peer: ", i+1)
		}
		switch f := tunnel(s, t); {
		case f.state != Healthy && len(all) > 1:
			reasons = append(reasons, with+f.text())
		case t.Loss >= MuchLoss:
			reasons = append(reasons, fmt.Sprintf("%s%.*f %% of the echoes between the gateways are lost", with, decimals(t.Loss), t.Loss*100))
		}
	}
	if len(s.Failed) > 0 {
		reasons = append(reasons, "gateway: "+strings.Join(s.Failed, "; "))
	}
	return reasons
}

func decimals(loss float64) int {
	if loss < 0.1 {
		return 1
	}
	return 0
}

// nodes evaluates the paths of the nodes: to their gateway, and through it to nodes of the peer.
func nodes(s *records.Status, names []string) (State, []string) {
	if len(names) == 0 {
		return Degraded, []string{"no node is Ready"}
	}
	var reasons []string
	for _, name := range names {
		if n, _ := Node(s, name); n.Refused != "" {
			reasons = append(reasons, "node "+name+" refuses the peering: "+n.Refused)
		}
	}
	silent, unproven := Missing(s, names)
	if len(silent) > 0 {
		reasons = append(reasons, "no echo between gateway and node "+strings.Join(silent, ", "))
	}
	if len(unproven) > 0 {
		reasons = append(reasons, "no answer from nodes of the peer to node "+strings.Join(unproven, ", "))
	}
	switch {
	case len(reasons) == 0:
		return Healthy, nil
	case len(silent)+len(unproven) == len(names):
		// This is also the state in the first seconds: the gateways reach each other before the nodes do.
		return Down, reasons
	}
	return Degraded, reasons
}

// Missing returns the nodes whose echoes do not reach the gateway, and of the others those to which no node of the peer
// answers.
func Missing(s *records.Status, names []string) (silent, unproven []string) {
	for _, name := range names {
		switch n, _ := Node(s, name); {
		case !echoes(s, n):
			silent = append(silent, name)
		case !proven(s, n):
			unproven = append(unproven, name)
		}
	}
	return silent, unproven
}

// NodeFault returns the reason why the packets of a node do not cross; "" if they do.
func NodeFault(s *records.Status, name string) string {
	n, _ := Node(s, name)
	switch {
	case n.Refused != "":
		return "it refuses the peering: " + n.Refused
	case !echoes(s, n):
		return "no echo between gateway and node"
	case !proven(s, n):
		return "no answer from nodes of the peer"
	}
	return ""
}

// NarrowTunnel returns the path MTU between the gateways, in bytes, if packets of size mtu do not fit; 0 if they do, or
// if nothing was measured.
func NarrowTunnel(s *records.Status, mtu int) int {
	size := 0
	for _, t := range s.AllTunnels() {
		if t.Path.MTU > 0 && (size == 0 || t.Path.MTU < size) {
			size = t.Path.MTU
		}
	}
	if mtu+tunnelOverheadLeast > size {
		return size
	}
	return 0
}

// NarrowNode is NarrowTunnel for the path from a node to its gateway.
func NarrowNode(n records.NodeStatus, mtu int) int {
	if mtu+OverlayOverhead > n.Path.MTU {
		return n.Path.MTU
	}
	return 0
}

// narrow returns the hops in a report that do not carry packets of that size, in bytes; "" if all do, or none was
// measured.
func narrow(s *records.Status, names []string, mtu int) string {
	if mtu == 0 {
		return ""
	}
	var reasons []string
	if size := NarrowTunnel(s, mtu); size > 0 {
		reasons = append(reasons, fmt.Sprintf("the path between the gateways carries %d, which is enough for %d", size, size-TunnelOverhead))
	}
	for _, name := range names {
		n, _ := Node(s, name)
		if size := NarrowNode(n, mtu); size > 0 {
			reasons = append(reasons, fmt.Sprintf("that from node %s to the gateway %d, enough for %d", name, size, size-OverlayOverhead))
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("packets of %d bytes do not fit: %s (liqoctl network connect --update adapts the MTU)", mtu, strings.Join(reasons, ", "))
}

// Node returns the status of a node in a report; the report may be nil.
func Node(s *records.Status, name string) (records.NodeStatus, bool) {
	if s == nil {
		return records.NodeStatus{}, false
	}
	i, found := slices.BinarySearchFunc(s.Nodes, name, func(n records.NodeStatus, name string) int { return strings.Compare(n.Name, name) })
	if !found {
		return records.NodeStatus{}, false
	}
	return s.Nodes[i], true
}

// NodeReady reports whether the packets of a node and its pods cross.
func NodeReady(s *records.Status, name string) bool { return s != nil && NodeFault(s, name) == "" }

// NodesReady counts the nodes whose packets cross.
func NodesReady(s *records.Status, names []string) int {
	count := 0
	for _, name := range names {
		if NodeReady(s, name) {
			count++
		}
	}
	return count
}

func echoes(s *records.Status, n records.NodeStatus) bool {
	return !n.LastEcho.IsZero() && s.Time.Sub(n.LastEcho) < NodeSilence
}

func proven(s *records.Status, n records.NodeStatus) bool {
	return !n.LastProof.IsZero() && s.Time.Sub(n.LastProof) < ProofSilence
}

// Same reports whether two reports of a gateway result in the same state, and differ only in counters and ages.
func Same(a, b records.Status) bool { return slices.Equal(condition(&a), condition(&b)) }

// condition returns a report's contents without counters and ages.
func condition(s *records.Status) []string {
	f := tunnel(s, s.TunnelStatus)
	c := append([]string{
		s.Pod, string(s.Implementation), string(s.Overlay), s.Endpoint.String(),
		string(f.state), f.reason, fmt.Sprint(s.LastHandshake.IsZero(), s.Loss >= MuchLoss, s.Path),
	}, s.Failed...)
	for _, e := range s.Exposed {
		c = append(c, e.Host.String(), e.Address.String())
	}
	for _, n := range s.Nodes {
		c = append(c, fmt.Sprint(n.Name, echoes(s, n), proven(s, n), n.Path, n.Refused, n.Unused))
	}
	for _, t := range s.Tunnels {
		f := tunnel(s, t)
		c = append(c, fmt.Sprint(t.Endpoint, f.state, f.reason, t.LastHandshake.IsZero(), t.Loss >= MuchLoss, t.Path, t.Unused))
	}
	return c
}

// Loss returns the share of lost echoes to report, given the number of missing ones and the time since the last of them
// was sent.
func Loss(missing int, share float64, clean time.Duration) float64 {
	if missing < LossLeast || clean >= LossClean {
		return 0
	}
	return share
}
