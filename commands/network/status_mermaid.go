package network

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
)

// diagram renders peerings as a Mermaid flowchart, as supported in GitHub's Markdown.
type diagram struct {
	strings.Builder
	all      []status.Peering
	peers    []string // cluster at the other end of each peering
	clusters []string // that were read, and their peers
	boxes    []string // IDs of gateways that are drawn
}

// edge is a tunnel between two gateways. Its state is the worse of the states in both clusters.
type edge struct {
	from, to string // IDs
	number   int    // of the gateway at to
	state    health.State
	label    string
}

// mermaid draws clusters, gateways, nodes and tunnels. For a peer that was not read it draws the gateways at the ends
// of tunnels.
func mermaid(all []status.Peering) string {
	d := &diagram{all: all}
	for i, p := range all {
		peer := p.Peer
		// The same peering in both clusters; the names of its records may differ.
		if len(all) == 2 && all[1-i].Cluster != p.Cluster {
			peer = all[1-i].Cluster
		}
		d.peers = append(d.peers, peer)
		d.clusters = appendNew(appendNew(d.clusters, p.Cluster), peer)
	}
	d.WriteString("flowchart LR\n")
	edges := d.edges()
	for i := range d.clusters {
		d.cluster(i, edges)
	}
	for _, e := range edges {
		fmt.Fprintf(d, "  %s ===|\"%s\"| %s\n", e.from, entities(e.label), e.to)
	}
	return d.String()
}

// id returns the ID of a gateway. It does not contain names of clusters.
func (d *diagram) id(cluster, peer string, gateway int) string {
	return fmt.Sprintf("c%dp%dg%d", slices.Index(d.clusters, cluster), slices.Index(d.clusters, peer), gateway)
}

func (d *diagram) edges() (edges []edge) {
	worst := []health.State{health.Healthy, health.Degraded, health.Connecting, health.Unknown, health.Down}
	for i, p := range d.all {
		for _, g := range p.Gateways {
			for _, t := range g.Tunnels {
				t = currentTunnel(g, t)
				e := edge{d.id(p.Cluster, d.peers[i], g.Number), d.id(d.peers[i], p.Cluster, t.PeerGateway), t.PeerGateway, t.State, string(t.State)}
				if t.State == health.Healthy {
					e.label += ", " + measured(t, false)
				}
				other := slices.IndexFunc(edges, func(x edge) bool { return x.from == e.to && x.to == e.from })
				if other < 0 {
					edges = append(edges, e)
				} else if x := &edges[other]; slices.Index(worst, e.state) > slices.Index(worst, x.state) {
					x.state, x.label = e.state, e.label
				}
			}
		}
	}
	return edges
}

// cluster draws a cluster with its nodes and gateways.
func (d *diagram) cluster(index int, edges []edge) {
	name := d.clusters[index]
	sides, title := slices.DeleteFunc(slices.Clone(d.all), func(p status.Peering) bool { return p.Cluster != name }), "cluster "+name
	if len(sides) == 0 {
		title += " (not read)"
	}
	fmt.Fprintf(d, "  subgraph c%d[\"%s\"]\n", index, entities(title))
	nodes := fmt.Sprintf("c%dn", index)
	if len(sides) > 0 {
		lines, state := nodeLines(sides)
		d.box(nodes, state, lines...)
	}
	for i, p := range d.all {
		if p.Cluster != name {
			continue
		}
		for _, g := range p.Gateways {
			id := d.id(name, d.peers[i], g.Number)
			d.box(id, g.State, gatewayLines(g, p.Peer, len(sides) > 1)...)
			if index == 0 {
				fmt.Fprintf(d, "    %s --- %s\n", nodes, id)
			} else { // peers are on the right, with their nodes outermost
				fmt.Fprintf(d, "    %s --- %s\n", id, nodes)
			}
		}
	}
	for _, e := range edges {
		if strings.HasPrefix(e.to, fmt.Sprintf("c%dp", index)) && !slices.Contains(d.boxes, e.to) {
			d.box(e.to, "", fmt.Sprintf("gateway %d", e.number))
		}
	}
	d.WriteString("  end\n")
}

// gatewayLines returns the text of a gateway's box. It contains the peer if the cluster has several.
func gatewayLines(g status.Gateway, peer string, several bool) []string {
	first := fmt.Sprintf("gateway %d", g.Number)
	if several {
		first += " for " + peer
	}
	if g.State != "" {
		first += ": " + string(g.State)
	}
	lines := []string{first}
	if g.Pod != "" {
		lines = append(lines, "pod "+g.Pod)
	}
	if g.Node != "" {
		lines = append(lines, "node "+g.Node)
	}
	return lines
}

// box draws a box in the colour of a state.
func (d *diagram) box(id string, state health.State, lines ...string) {
	d.boxes = append(d.boxes, id)
	for i, line := range lines {
		lines[i] = entities(line)
	}
	colour := "#8a93a3"
	switch state {
	case health.Healthy:
		colour = "#2a8a43"
	case health.Degraded, health.Connecting:
		colour = "#b87a00"
	case health.Down, health.Unknown:
		colour = "#c62828"
	}
	fmt.Fprintf(d, "    %s[\"%s\"]\n    style %[1]s stroke:%[3]s\n", id, strings.Join(lines, "<br/>"), colour)
}

// entities escapes a text for Mermaid, whose labels may contain entities, Markdown, HTML and directives: all characters
// except letters, digits and a few harmless ones become entities.
func entities(text string) string {
	var b strings.Builder
	for _, r := range ui.VisibleCell(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,:-/", r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
