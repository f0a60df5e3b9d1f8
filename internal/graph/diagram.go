package graph

import (
	"fmt"
	"strings"
	"unicode"

	"liqonet.io/liqonet/internal/health"
)

// diagram is a graph as boxes in groups and lines between boxes: what Mermaid, DOT and SVG have in common.
type diagram struct {
	groups []group
	edges  []edge
}

type group struct {
	id, title string
	sides     [][]box // gateways of each peering
	nodes     *box    // nil: not known
}

type box struct {
	id    string // made here: no name is in it
	lines []string
	state health.State
}

type edge struct {
	from, to string
	label    string
	title    string // more of it
	state    health.State
}

func (g Graph) diagram() (d diagram) {
	at := make(map[[2]string]map[int]string) // ids of gateways, by cluster and peer
	for i, c := range g.Clusters {
		gr := group{id: fmt.Sprintf("c%d", i), title: "cluster " + plain(c.Name)}
		for j, p := range c.Peerings {
			at[[2]string{c.Name, p.Peer}] = make(map[int]string)
			var boxes []box
			for _, v := range p.Gateways {
				b := box{id: fmt.Sprintf("c%dp%dg%d", i, j, v.Number), lines: v.lines(p, len(c.Peerings) > 1), state: v.State}
				at[[2]string{c.Name, p.Peer}][v.Number] = b.id
				boxes = append(boxes, b)
			}
			gr.sides = append(gr.sides, boxes)
		}
		if !c.Read {
			gr.title += " (not read)"
		} else {
			gr.nodes = &box{id: fmt.Sprintf("c%dn", i)}
			if len(c.Nodes) > 0 {
				gr.nodes.state = health.Healthy
			}
			for _, line := range c.nodeLines() {
				gr.nodes.lines = append(gr.nodes.lines, plain(line))
			}
			for _, n := range c.Nodes {
				if len(n.Unverified) > 0 {
					gr.nodes.state = health.Degraded
				}
			}
		}
		d.groups = append(d.groups, gr)
	}
	for _, t := range g.Tunnels {
		e := edge{from: at[[2]string{t.From.Cluster, t.To.Cluster}][t.From.Gateway], to: at[[2]string{t.To.Cluster, t.From.Cluster}][t.To.Gateway], state: t.State}
		e.label, e.title = plain(string(t.State)), "tunnel"
		if v := t.Views[0]; t.State == health.Healthy {
			e.label = fmt.Sprintf("healthy, %s, %s", roundTrip(v.Tunnel), traffic(v.Tunnel))
		}
		for _, v := range t.Views {
			e.title += "; " + plain(v.Cluster+": "+string(v.State)+facts(v.Tunnel))
		}
		d.edges = append(d.edges, e)
	}
	return d
}

// lines are the text in a gateway's box. The peer is named where a cluster has several.
func (g Gateway) lines(p Peering, several bool) []string {
	lines := []string{fmt.Sprintf("gateway %d", g.Number)}
	if several {
		lines[0] += " for " + plain(p.Peer)
	}
	if g.State != "" {
		lines[0] += ": " + plain(string(g.State))
	}
	if g.Pod != "" {
		lines = append(lines, "pod "+plain(g.Pod))
	}
	if g.Node != "" {
		lines = append(lines, "node "+plain(g.Node))
	}
	return lines
}

// grammar is the syntax of a language for diagrams. Texts are escaped already; ids need it not.
type grammar struct {
	head, group, box, overlay, edge, end, foot string // formats
	join                                       string // lines of a box
	escape                                     func(string) string
}

func (d diagram) in(g grammar) string {
	var b strings.Builder
	text := func(x box) string {
		lines := make([]string, len(x.lines))
		for i, line := range x.lines {
			lines[i] = g.escape(line)
		}
		return strings.Join(lines, g.join)
	}
	b.WriteString(g.head)
	for i, gr := range d.groups {
		fmt.Fprintf(&b, g.group, gr.id, g.escape(gr.title))
		if gr.nodes != nil {
			fmt.Fprintf(&b, g.box, gr.nodes.id, text(*gr.nodes), colour(gr.nodes.state))
		}
		for _, side := range gr.sides {
			for _, x := range side {
				fmt.Fprintf(&b, g.box, x.id, text(x), colour(x.state))
				if gr.nodes != nil && i == 0 {
					fmt.Fprintf(&b, g.overlay, gr.nodes.id, x.id)
				} else if gr.nodes != nil { // peers are on the right, and their nodes farther out
					fmt.Fprintf(&b, g.overlay, x.id, gr.nodes.id)
				}
			}
		}
		b.WriteString(g.end)
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, g.edge, e.from, e.to, g.escape(e.label), colour(e.state))
	}
	return b.String() + g.foot
}

// colour is that of a state, for diagrams.
func colour(s health.State) string {
	switch s {
	case health.Healthy:
		return "#2a8a43"
	case health.Degraded, health.Connecting:
		return "#b87a00"
	case health.Down, health.Unknown:
		return "#c62828"
	}
	return "#8a93a3"
}

// DOT is the graph for Graphviz.
func (g Graph) DOT() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	return g.diagram().in(grammar{
		head:  "graph liqonet {\n  rankdir=LR\n  node [shape=box]\n",
		group: "  subgraph cluster_%s {\n    label=\"%s\"\n", box: "    %s [label=\"%s\", color=\"%s\"]\n",
		overlay: "    %s -- %s\n", end: "  }\n", edge: "  %s -- %s [label=\"%s\", color=\"%s\"]\n", foot: "}\n",
		join: `\n`, escape: quote.Replace,
	})
}

// Mermaid is the graph for Mermaid, as in Markdown of GitHub. Its labels know entities, Markdown, HTML and directives: what is no letter,
// digit or harmless sign becomes an entity.
func (g Graph) Mermaid() string {
	return g.diagram().in(grammar{
		head: "flowchart LR\n", group: "  subgraph %s[\"%s\"]\n", box: "    %s[\"%s\"]\n    style %[1]s stroke:%[3]s\n",
		overlay: "    %s --- %s\n", end: "  end\n", edge: "  %s ===|\"%[3]s\"| %[2]s\n", join: "<br/>",
		escape: func(text string) string {
			var b strings.Builder
			for _, r := range text {
				if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,:-/", r) {
					b.WriteRune(r)
				} else {
					fmt.Fprintf(&b, "#%d;", r)
				}
			}
			return b.String()
		},
	})
}
