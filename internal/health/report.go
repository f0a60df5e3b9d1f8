package health

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// The overhead of encapsulation, in bytes.
const (
	OverlayOverhead = 50 // IP 20, UDP 8, VXLAN or Geneve 8, Ethernet 14
	TunnelOverhead  = 80 // IPv6 40, UDP 8, WireGuard 32; over IPv4 it is 20 less
	// tunnelOverheadLeast is TunnelOverhead if the tunnel uses IPv4 on its whole path.
	tunnelOverheadLeast = TunnelOverhead - 20
)

// TunnelMissing returns the reason why the gateways do not reach each other; "" if they do. A nil report means none
// yet.
func TunnelMissing(s *records.Status) string {
	if s == nil {
		_, reason := Judge(Observation{})
		return reason
	}
	_, reason := Tunnel(s, s.TunnelStatus)
	return reason
}

// Tunnel returns the state of one tunnel in a report and, unless it is healthy, the reason.
func Tunnel(s *records.Status, t records.TunnelStatus) (State, string) {
	f := tunnel(s, t)
	return states[f.Level], f.Text
}

// tunnel evaluates the path between two gateways; zero if it works. Answers take precedence over handshakes, because a
// renewal of the tunnel resets the latter.
func tunnel(s *records.Status, t records.TunnelStatus) Finding {
	with := ""
	if t.Endpoint.IsValid() {
		with = " with " + t.Endpoint.String()
	}
	f := Finding{Code: TunnelEcho, Level: levelConnecting}
	if !t.Session.Usable {
		f.Code = TunnelHandshake
	}
	switch echo, handshake := s.Time.Sub(t.LastEcho), s.Time.Sub(t.Session.Since); {
	case !t.LastEcho.IsZero() && echo < EchoSilence:
		return Finding{}
	case !t.LastEcho.IsZero():
		f.Level, f.Figures.Age, f.Text = levelDown, seconds.Duration(echo), fmt.Sprintf("the peer's gateway answered last %s ago", round(echo))
	case t.Session.Since.IsZero():
		f.Text = "no handshake yet" + with
	case f.Code == TunnelHandshake:
		f.Level, f.Figures.Age, f.Text = levelDown, seconds.Duration(handshake), fmt.Sprintf("the last handshake%s was %s ago", with, round(handshake))
	default:
		f.Text = "the peer's gateway has answered no echo yet"
	}
	return f
}

// tunnels evaluates all tunnels of a gateway. If none works, that is one finding. Without session keys there are no
// echoes either: the latter is a note.
func tunnels(s *records.Status) (findings []Finding) {
	add := func(f Finding) {
		findings = append(findings, f)
		if f.Code == TunnelHandshake {
			f.Code, f.Level = TunnelEcho, Note
			findings = append(findings, f)
		}
	}
	all := s.AllTunnels()
	none := tunnel(s, s.TunnelStatus)
	if none.Level > Note {
		if len(all) == 1 {
			none.Subject.Tunnel = 1
		}
		add(none)
	}
	for i, t := range all {
		f := tunnel(s, t)
		if f.Level > Note && none.Level == Note {
			f.Level, f.Subject.Tunnel, f.several = levelDegraded, i+1, len(all) > 1
			add(f)
		}
		if f.Level == Note && t.Loss >= MuchLoss {
			findings = append(findings, Finding{
				Code: TunnelLoss, Level: levelDegraded, Subject: Subject{Tunnel: i + 1}, Figures: Figures{Loss: t.Loss}, several: len(all) > 1,
				Text: fmt.Sprintf("%.*f %% of the echoes between the gateways are lost", decimals(t.Loss), t.Loss*100),
			})
		}
	}
	return findings
}

// applied has what a gateway has failed to do.
func applied(s *records.Status) []Finding {
	if len(s.Failed) == 0 {
		return nil
	}
	return []Finding{{Code: GatewayApplied, Level: levelDegraded, Text: "gateway: " + strings.Join(s.Failed, "; ")}}
}

func decimals(loss float64) int {
	if loss < 0.1 {
		return 1
	}
	return 0
}

// nodes evaluates the paths of the nodes: to their gateway, and through it to nodes of the peer. If none works, which
// is also so in the first seconds, as the gateways reach each other before the nodes do, the gateway is down.
func nodes(s *records.Status, names []string) (findings []Finding) {
	if len(names) == 0 {
		return []Finding{{Code: NodesNotReady, Level: levelDegraded, Text: "no node is Ready"}}
	}
	silent, unproven := Missing(s, names)
	level := levelDegraded
	if len(silent)+len(unproven) == len(names) {
		level = levelDown
	}
	for name, n := range Nodes(s, names) {
		if n.Refused != "" {
			findings = append(findings, ofNode(NodesRefused, levelDegraded, name, "node %s refuses the peering: "+n.Refused))
		}
	}
	for _, name := range silent {
		findings = append(findings, ofNode(OverlayEcho, level, name, "no echo between gateway and node %s"))
	}
	for _, name := range unproven {
		findings = append(findings, ofNode(PathVerified, level, name, "no answer from nodes of the peer to node %s"))
	}
	for name, n := range Nodes(s, names) {
		if n.Path.Asked && n.Path.MTU == 0 {
			findings = append(findings, ofNode(OverlayProbe, Note, name, "the gateway does not answer probes of node %s"))
		}
	}
	return findings
}

// Missing returns the nodes whose echoes do not reach the gateway, and of the others those to which no node of the peer
// answers.
func Missing(s *records.Status, names []string) (silent, unproven []string) {
	for name, n := range Nodes(s, names) {
		switch {
		case !echoes(s, *n):
			silent = append(silent, name)
		case !proven(s, *n):
			unproven = append(unproven, name)
		}
	}
	return silent, unproven
}

// NodeFault returns the reason why the packets of a node do not cross; "" if they do.
func NodeFault(s *records.Status, name string) string { return fault(s, Node(s, name)) }

func fault(s *records.Status, n records.NodeStatus) string {
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

// narrow has the hops in a report that do not carry packets of that size, in bytes; none if the size is 0, or nothing
// was measured.
func narrow(s *records.Status, names []string, mtu int) (findings []Finding) {
	if mtu == 0 {
		return nil
	}
	if size := NarrowTunnel(s, mtu); size > 0 {
		findings = append(findings, Finding{
			Code: TunnelMTU, Level: levelDegraded, Figures: Figures{Size: size, Needed: mtu},
			Text: fmt.Sprintf("packets of %d bytes do not fit the path between the gateways, which carries %d: enough for %d", mtu, size, size-TunnelOverhead),
		})
	}
	for name, n := range Nodes(s, names) {
		if size := NarrowNode(*n, mtu); size > 0 {
			f := ofNode(OverlayMTU, levelDegraded, name, fmt.Sprintf(
				"packets of %d bytes do not fit the path between the gateway and node %%s, which carries %d: enough for %d", mtu, size, size-OverlayOverhead))
			f.Figures = Figures{Size: size, Needed: mtu}
			findings = append(findings, f)
		}
	}
	return findings
}

// Node returns the status of a node in a report; zero if it has none. The report may be nil.
func Node(s *records.Status, name string) (n records.NodeStatus) {
	if s == nil {
		return n
	}
	if i, found := search(s, name); found {
		n = s.Nodes[i]
	}
	return n
}

// search returns the position of a node in a report.
func search(s *records.Status, name string) (at int, found bool) {
	return slices.BinarySearchFunc(s.Nodes, name, func(n records.NodeStatus, name string) int { return strings.Compare(n.Name, name) })
}

// NodeReady reports whether the packets of a node, by its status in a report, and of its pods cross.
func NodeReady(s *records.Status, n records.NodeStatus) bool { return s != nil && fault(s, n) == "" }

// NodesReady counts the nodes whose packets cross.
func NodesReady(s *records.Status, names []string) int {
	count := 0
	for _, n := range Nodes(s, names) {
		if NodeReady(s, *n) {
			count++
		}
	}
	return count
}

// Nodes returns the statuses of nodes in a report, by name; zero for a node that it does not have. Names in order are
// found without a search. The report may be nil.
func Nodes(s *records.Status, names []string) iter.Seq2[string, *records.NodeStatus] {
	return func(yield func(string, *records.NodeStatus) bool) {
		var none records.NodeStatus
		next := 0
		for _, name := range names {
			n := &none
			switch {
			case s == nil:
			case next < len(s.Nodes) && s.Nodes[next].Name == name:
				n, next = &s.Nodes[next], next+1
			default:
				if i, found := search(s, name); found {
					n, next = &s.Nodes[i], i+1
				}
			}
			if !yield(name, n) {
				return
			}
		}
	}
}

func echoes(s *records.Status, n records.NodeStatus) bool {
	return !n.LastEcho.IsZero() && s.Time.Sub(n.LastEcho) < NodeSilence
}

func proven(s *records.Status, n records.NodeStatus) bool {
	return !n.LastProof.IsZero() && s.Time.Sub(n.LastProof) < ProofSilence
}

// Same reports whether two reports of a gateway result in the same findings, and differ only in counters and ages.
func Same(a, b records.Status) bool {
	return slices.Equal(found(&a), found(&b)) && slices.Equal(contents(&a), contents(&b))
}

// found has the findings of a report, without ages and shares.
func found(s *records.Status) []Finding {
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		names[i] = n.Name
	}
	findings := slices.Concat(tunnels(s), nodes(s, names))
	for i, f := range findings {
		if f.Figures != (Figures{}) {
			findings[i].Figures, findings[i].Text = Figures{}, ""
		}
	}
	return findings
}

// contents has what a report says besides, without counters and ages.
func contents(s *records.Status) []string {
	c := append([]string{s.Pod, string(s.Implementation), string(s.Overlay)}, s.Failed...)
	for _, e := range s.Exposed {
		c = append(c, e.Host.String(), e.Address.String())
	}
	for _, n := range s.Nodes {
		c = append(c, fmt.Sprint(n.Name, n.Path, n.Unused))
	}
	for _, t := range slices.Concat(s.Tunnels, []records.TunnelStatus{s.TunnelStatus}) {
		c = append(c, fmt.Sprint(t.Endpoint, t.Session.Since.IsZero(), t.Path, t.Unused))
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
