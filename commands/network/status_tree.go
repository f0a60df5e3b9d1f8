package network

import (
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/records"
)

// branch is a line of a tree, with the lines below it.
type branch struct {
	text  string
	below []branch
}

// tree writes a tree for each cluster that was read: its peerings, their gateways and tunnels, and its nodes.
func (o statusOptions) tree(b *strings.Builder, all []status.Peering) {
	for _, sides := range grouped(all, func(p status.Peering) string { return p.Cluster }) {
		root := branch{text: "cluster " + ui.VisibleCell(sides[0].Cluster)}
		for _, side := range sides {
			root.below = append(root.below, o.peeringBranch(side))
		}
		lines, _ := nodeLines(sides)
		nodes := branch{text: lines[0]}
		for _, line := range lines[1:] {
			nodes.below = append(nodes.below, branch{text: ui.VisibleCell(line)})
		}
		root.below = append(root.below, nodes)
		root.write(b, "", "")
	}
}

// peeringBranch returns the branch of a peering in one cluster, with its gateways and their tunnels.
func (o statusOptions) peeringBranch(p status.Peering) branch {
	state := func(s health.State) string { return o.paint(ui.VisibleCell(string(s))) }
	b := branch{text: fmt.Sprintf("peering with %s: %s%s", ui.VisibleCell(p.Peer), state(p.State), because(p.Reason))}
	for _, g := range p.Gateways {
		gateway := branch{text: fmt.Sprintf("gateway %d: %s", g.Number, state(g.State))}
		if g.Pod != "" {
			gateway.text += ", pod " + ui.VisibleCell(g.Pod)
		}
		if g.Node != "" {
			gateway.text += " on node " + ui.VisibleCell(g.Node)
		}
		for _, t := range g.Tunnels {
			t = currentTunnel(g, t)
			text := fmt.Sprintf("tunnel to gateway %d: %s", t.PeerGateway, state(t.State))
			switch {
			case t.State != health.Healthy:
				text += because(t.Reason)
			case t.Unused != "":
				text += fmt.Sprintf(", %s, unused: %s", measured(t, true), ui.VisibleCell(t.Unused))
			default:
				text += ", " + measured(t, true)
			}
			gateway.below = append(gateway.below, branch{text: text})
		}
		b.below = append(b.below, gateway)
	}
	return b
}

// write writes a tree. first is the prefix of the first line, rest that of the others.
func (t branch) write(b *strings.Builder, first, rest string) {
	fmt.Fprintf(b, "%s%s\n", first, t.text)
	for i, below := range t.below {
		if i == len(t.below)-1 {
			below.write(b, rest+"└─ ", rest+"   ")
		} else {
			below.write(b, rest+"├─ ", rest+"│  ")
		}
	}
}

// currentTunnel returns a tunnel with its current state. The state is unknown if the gateway's last report is too old.
// If the gateway is down, for example because no node reaches it, the tunnel carries no packets and is down.
func currentTunnel(g status.Gateway, t status.Tunnel) status.Tunnel {
	switch {
	case g.State == health.Unknown || g.ReportAge != nil && health.Late(time.Duration(*g.ReportAge), 0):
		t.State, t.Reason = health.Unknown, "the gateway's last report is too old"
	case g.State == health.Down && t.State == health.Healthy:
		t.State, t.Reason = g.State, g.Reason
	}
	return t
}

// measured formats the measurements of a tunnel.
func measured(t status.Tunnel, withLoss bool) string {
	loss := ""
	if withLoss {
		loss = ", loss " + ui.Percent(t.Loss)
	}
	return fmt.Sprintf("%s%s%s, %s received, %s sent", ui.OrDash(known(t.RTT, ui.RoundTrip)), byTransport(t), loss, ui.ByteCount(t.RxBytes), ui.ByteCount(t.TxBytes))
}

// byTransport names the transport of a tunnel, unless it is UDP.
func byTransport(t status.Tunnel) string {
	if t.Transport == records.WebSocket {
		return " by WebSocket"
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + ui.VisibleCell(reason)
}

// Limits for names: of many nodes, verified ones are only counted, and only the first of the others are listed.
const (
	mostNodes      = 12
	mostUnverified = 50
)

// nodeLines returns the number of verified nodes of a cluster, then names. The state is empty if no node is known.
func nodeLines(sides []status.Peering) (lines []string, state health.State) {
	var names, verified, others []string
	missed := make(map[string][]string) // peers that did not verify a node, by the node's name
	for _, p := range sides {
		for _, n := range p.NodeStates() {
			if _, known := missed[n.Name]; !known {
				names, missed[n.Name] = append(names, n.Name), nil
			}
			if !n.Ready {
				missed[n.Name] = append(missed[n.Name], p.Peer)
			}
		}
	}
	for _, name := range names {
		if peers := missed[name]; len(peers) > 0 {
			others = append(others, fmt.Sprintf("%s: not verified by %s", name, strings.Join(peers, ", ")))
		} else {
			verified = append(verified, name)
		}
	}
	switch {
	case len(others) > 0:
		state = health.Degraded
	case len(names) > 0:
		state = health.Healthy
	}
	lines = append(lines, fmt.Sprintf("nodes: %d of %d verified", len(verified), len(names)))
	lines = append(lines, others[:min(len(others), mostUnverified)]...)
	if more := len(others) - mostUnverified; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more that are not verified", more))
	}
	if len(names) <= mostNodes {
		lines = append(lines, verified...)
	}
	return lines, state
}
