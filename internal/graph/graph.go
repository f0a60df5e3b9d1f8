// Package graph draws peerings: clusters, gateways, nodes and tunnels as one value (Of), and this value as text, Mermaid, DOT,
// SVG and HTML. It is pure: what status has read goes in, text comes out. All names are input.
package graph

import (
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
)

// Graph is what is known of some peerings.
type Graph struct {
	Clusters []Cluster `json:"clusters"`
	Tunnels  []Tunnel  `json:"tunnels"`
}

// Cluster is a cluster. Of one that was not read, only that is known which its peers know: no state and no node.
type Cluster struct {
	Name     string    `json:"name"`
	Read     bool      `json:"read"`
	Peerings []Peering `json:"peerings"`
	Nodes    []Node    `json:"nodes,omitempty"` // that should take part
}

// Peering is a cluster's side of a peering.
type Peering struct {
	Peer     string       `json:"peer"`
	State    health.State `json:"state,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Gateways []Gateway    `json:"gateways"`
}

// Gateway is one gateway of a peering.
type Gateway struct {
	Number int          `json:"number"`
	State  health.State `json:"state,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Pod    string       `json:"pod,omitempty"`
	Node   string       `json:"node,omitempty"`
}

// Node is a node.
type Node struct {
	Name string `json:"name"`
	// Unverified are the peers that do not answer its packets.
	Unverified []string `json:"unverified,omitempty"`
}

// End is an end of a tunnel: a gateway of a cluster, for its peering with the other end's.
type End struct {
	Cluster string `json:"cluster"`
	Gateway int    `json:"gateway"`
}

// Tunnel joins two gateways. Its state is the worst that one of them sees.
type Tunnel struct {
	From  End          `json:"from"`
	To    End          `json:"to"`
	State health.State `json:"state"`
	Views []View       `json:"views"` // of clusters that were read
}

// View is a tunnel as one of its clusters sees it.
type View struct {
	Cluster string `json:"cluster"`
	status.Tunnel
}

// Of is the graph of peerings: all those of a cluster, or both sides of one.
func Of(all []status.Peering) Graph {
	g := Graph{Clusters: []Cluster{}, Tunnels: []Tunnel{}}
	peers := make([]string, len(all))
	for i, p := range all {
		peers[i] = p.Peer
		if len(all) == 2 && all[1-i].Cluster != p.Cluster { // the same, whatever the record is called
			peers[i] = all[1-i].Cluster
		}
		g.cluster(p.Cluster).read(p, peers[i])
		g.cluster(peers[i]).peering(p.Cluster)
	}
	for i, p := range all {
		for _, gateway := range p.Gateways {
			for _, t := range gateway.Tunnels {
				g.cluster(peers[i]).peering(p.Cluster).gateway(t.Gateway)
				g.tunnel(End{p.Cluster, gateway.Number}, End{peers[i], t.Gateway}).add(View{p.Cluster, current(gateway, t)})
			}
		}
	}
	return g
}

// current is the state of a tunnel by its gateway's last report: unknown if that is too old. No tunnel carries packets of a gateway
// that is down, such as one that the nodes miss.
func current(g status.Gateway, t status.Tunnel) status.Tunnel {
	switch {
	case g.State == health.Unknown || g.ReportAge != nil && health.Late(*g.ReportAge, 0):
		t.State, t.Reason = health.Unknown, "the gateway's last report is too old"
	case g.State == health.Down && t.State == health.Healthy:
		t.State, t.Reason = g.State, g.Reason
	}
	return t
}

// read adds the peering as a cluster reports it.
func (c *Cluster) read(p status.Peering, peer string) {
	c.Read = true
	v := c.peering(peer)
	v.State, v.Reason = p.State, p.Reason
	for _, g := range p.Gateways {
		*v.gateway(g.Number) = Gateway{g.Number, g.State, g.Reason, g.Pod, g.Node}
	}
	for _, n := range p.Nodes {
		node := one(&c.Nodes, func(x Node) bool { return x.Name == n.Name }, Node{Name: n.Name})
		if !n.Ready {
			node.Unverified = append(node.Unverified, peer)
		}
	}
}

// one is the element that is so; the new one where there is none.
func one[T any](all *[]T, is func(T) bool, none T) *T {
	i := slices.IndexFunc(*all, is)
	if i < 0 {
		i = len(*all)
		*all = append(*all, none)
	}
	return &(*all)[i]
}

func (g *Graph) cluster(name string) *Cluster {
	return one(&g.Clusters, func(c Cluster) bool { return c.Name == name }, Cluster{Name: name, Peerings: []Peering{}})
}

func (c *Cluster) peering(peer string) *Peering {
	return one(&c.Peerings, func(p Peering) bool { return p.Peer == peer }, Peering{Peer: peer, Gateways: []Gateway{}})
}

func (p *Peering) gateway(number int) *Gateway {
	return one(&p.Gateways, func(g Gateway) bool { return g.Number == number }, Gateway{Number: number})
}

func (g *Graph) tunnel(from, to End) *Tunnel {
	return one(&g.Tunnels, func(t Tunnel) bool { return t.From == from && t.To == to || t.From == to && t.To == from }, Tunnel{From: from, To: to})
}

// add adds what a cluster sees of a tunnel.
func (t *Tunnel) add(v View) {
	worst := []health.State{"", health.Healthy, health.Degraded, health.Connecting, health.Unknown, health.Down}
	if slices.Index(worst, v.State) > slices.Index(worst, t.State) {
		t.State = v.State
	}
	t.Views = append(t.Views, v)
}

// How many nodes are named: where there are more, the verified ones are counted, and of the others the first are named.
const (
	mostNodes      = 12
	mostUnverified = 50
)

// nodeLines are the text in the box of a cluster's nodes: how many are verified, then names.
func (c Cluster) nodeLines() []string {
	var verified, others []string
	for _, n := range c.Nodes {
		if len(n.Unverified) > 0 {
			others = append(others, fmt.Sprintf("%s: not verified by %s", n.Name, strings.Join(n.Unverified, ", ")))
		} else {
			verified = append(verified, n.Name)
		}
	}
	lines := []string{fmt.Sprintf("nodes: %d of %d verified", len(verified), len(c.Nodes))}
	lines = append(lines, others[:min(len(others), mostUnverified)]...)
	if more := len(others) - mostUnverified; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more that are not verified", more))
	}
	if len(c.Nodes) <= mostNodes {
		lines = append(lines, verified...)
	}
	return lines
}
