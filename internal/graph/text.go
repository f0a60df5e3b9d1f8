package graph

import (
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
	"liqonet.io/liqonet/internal/svg"
	"liqonet.io/liqonet/internal/units"
)

// branch is a line of a tree, and the lines below it.
type branch struct {
	text string
	kids []branch
}

// Text is the graph as a tree for each cluster that was read. paint colours the state of a peering; nil leaves it.
func (g Graph) Text(paint func(string) string) string {
	if paint == nil {
		paint = func(state string) string { return state }
	}
	var b strings.Builder
	for _, c := range g.Clusters {
		if !c.Read {
			continue
		}
		root := branch{text: "cluster " + plain(c.Name)}
		for _, p := range c.Peerings {
			root.kids = append(root.kids, g.peeringBranch(c, p, paint))
		}
		var nodes branch
		for i, line := range c.nodeLines() {
			if i == 0 {
				nodes.text = line
			} else {
				nodes.kids = append(nodes.kids, branch{text: plain(line)})
			}
		}
		root.kids = append(root.kids, nodes)
		root.write(&b, "", "")
	}
	return b.String()
}

// peeringBranch is a cluster's side of a peering: its gateways, and their tunnels as the cluster sees them.
func (g Graph) peeringBranch(c Cluster, p Peering, paint func(string) string) branch {
	b := branch{text: fmt.Sprintf("peering with %s: %s%s", plain(p.Peer), paint(plain(string(p.State))), plain(because(p.Reason)))}
	for _, gateway := range p.Gateways {
		kid := branch{text: fmt.Sprintf("gateway %d: %s", gateway.Number, paint(plain(string(gateway.State))))}
		if gateway.Pod != "" {
			kid.text += ", pod " + plain(gateway.Pod)
		}
		if gateway.Node != "" {
			kid.text += " on node " + plain(gateway.Node)
		}
		for _, t := range g.Tunnels {
			if end, ok := t.ends(End{c.Name, gateway.Number}, p.Peer); ok {
				for _, v := range t.Views {
					if v.Cluster == c.Name {
						text := fmt.Sprintf("tunnel to gateway %d: %s%s", end.Gateway, paint(plain(string(v.State))), plain(facts(v.Tunnel)))
						kid.kids = append(kid.kids, branch{text: text})
					}
				}
			}
		}
		b.kids = append(b.kids, kid)
	}
	return b
}

// ends is the other end of a tunnel that begins or ends at a gateway, and is with a peer.
func (t Tunnel) ends(at End, peer string) (End, bool) {
	switch {
	case t.From == at && t.To.Cluster == peer:
		return t.To, true
	case t.To == at && t.From.Cluster == peer:
		return t.From, true
	}
	return End{}, false
}

// write writes a tree. What stands before the first line differs from what stands before the others.
func (t branch) write(b *strings.Builder, first, rest string) {
	fmt.Fprintf(b, "%s%s\n", first, t.text)
	for i, kid := range t.kids {
		if i == len(t.kids)-1 {
			kid.write(b, rest+"└─ ", rest+"   ")
		} else {
			kid.write(b, rest+"├─ ", rest+"│  ")
		}
	}
}

// facts are what is measured of a tunnel, and why it is not healthy.
func facts(t status.Tunnel) string {
	if t.State != health.Healthy {
		return because(t.Reason)
	}
	text := fmt.Sprintf(", %s, loss %s, %s", roundTrip(t), units.Percent(t.Loss), traffic(t))
	if t.Unused != "" {
		text += ", unused: " + t.Unused
	}
	return text
}

func roundTrip(t status.Tunnel) string {
	rtt := time.Duration(-1)
	if t.RTT != nil {
		rtt = *t.RTT
	}
	return units.RoundTrip(rtt)
}

func traffic(t status.Tunnel) string {
	return units.Bytes(t.RxBytes) + " received, " + units.Bytes(t.TxBytes) + " sent"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// plain is a text that stays in its line, and that no terminal obeys.
func plain(text string) string {
	return strings.ReplaceAll(strings.Map(svg.Printable, text), "\n", " ")
}
