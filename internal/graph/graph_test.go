package graph

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/golden"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
)

// tunnel is one of a report that was made a second ago.
func tunnel(number int, state health.State) status.Tunnel {
	rtt := 600 * time.Microsecond
	t := status.Tunnel{Gateway: number, State: state, Endpoint: "192.0.2.1:30000", RTT: &rtt, RxBytes: 1536, TxBytes: 10}
	if state != health.Healthy {
		t.Reason = "the peer's gateway answered last 8s ago"
	}
	return t
}

func gateway(number int, state health.State, cluster string, tunnels ...status.Tunnel) status.Gateway {
	age := time.Second
	return status.Gateway{
		Number: number, State: state, Pod: fmt.Sprintf("gateway-%d", number), Node: fmt.Sprintf("%s-%d", cluster, number), ReportAge: &age, Tunnels: tunnels,
	}
}

func peering(cluster, peer string, state health.State, nodes int, gateways ...status.Gateway) status.Peering {
	p := status.Peering{Cluster: cluster, Peer: peer, State: state, Gateways: gateways}
	if state != health.Healthy {
		p.Reason = "gateway 2: tunnel to gateway 1 of the peer: the peer's gateway answered last 8s ago"
	}
	for i := range nodes {
		p.Nodes = append(p.Nodes, status.NodeState{Name: fmt.Sprintf("%s-%d", cluster, i+1), Ready: true})
	}
	return p
}

// bothSides are two clusters with two gateways each, one of which is cut off.
func bothSides() []status.Peering {
	pair := func(state health.State) []status.Tunnel {
		return []status.Tunnel{tunnel(1, state), tunnel(2, health.Healthy)}
	}
	a := peering("a", "b", health.Degraded, 2,
		gateway(1, health.Healthy, "a", pair(health.Healthy)...), gateway(2, health.Degraded, "a", pair(health.Down)...))
	b := peering("b", "a", health.Healthy, 3, gateway(1, health.Healthy, "b", pair(health.Healthy)...), gateway(2, health.Healthy, "b", pair(health.Healthy)...))
	return []status.Peering{a, b}
}

// several are the peerings of a cluster with 500 nodes.
func several() []status.Peering {
	b := peering("a", "b", health.Degraded, 500, gateway(1, health.Healthy, "a", tunnel(1, health.Healthy)))
	b.Nodes[6].Ready, b.Nodes[300].Ready = false, false
	c := peering("a", "c", health.Connecting, 500, status.Gateway{Number: 1, State: health.Connecting})
	c.Nodes[6].Ready = false
	return []status.Peering{b, c}
}

// hostile are names that mean something in each of the languages.
func hostile() []status.Peering {
	names := []string{`x"]; a["<script>alert(1)</script>`, "c\\\" %%{init: {}}%% `**b**` <img src=x>&amp;", "n\x1b[2J\n└─ gateway 9: healthy \u202e"}
	p := peering(names[0], names[1], health.Down, 1, gateway(1, health.Down, names[2], tunnel(1, health.Down)))
	p.Nodes[0] = status.NodeState{Name: names[2]}
	p.Reason, p.Gateways[0].Pod, p.Gateways[0].Tunnels[0].Reason = names[2], names[0], names[1]
	return []status.Peering{p}
}

func TestGoldens(t *testing.T) {
	for name, all := range map[string][]status.Peering{"both": bothSides(), "several": several(), "hostile": hostile(), "none": nil} {
		g := Of(all)
		golden.Check(t, name+".txt", g.Text(nil))
		golden.Check(t, name+".mmd", g.Mermaid())
		golden.Check(t, name+".dot", g.DOT())
		golden.Check(t, name+".svg", g.SVG())
		golden.Check(t, name+".html", g.HTML())
		if name == "both" {
			data, err := json.MarshalIndent(g, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name+".json", string(data)+"\n")
		}
	}
}

// Names are text and nothing else, whatever stands in them.
func TestNamesAreEscaped(t *testing.T) {
	g := Of(hostile())
	for name, c := range map[string]struct {
		text      string
		forbidden []string
	}{
		"text":    {g.Text(nil), []string{"\x1b", "\u202e", "\n└─ gateway 9"}},
		"mermaid": {g.Mermaid(), []string{"\x1b", "\u202e", "<script", "<img", "%%", "`", "]; a["}},
		"dot":     {g.DOT(), []string{"\x1b", "\u202e", `x"]`, `c\" `}},
		"svg":     {g.SVG(), []string{"\x1b", "\u202e", "<script", "<img", `"]`}},
		"html":    {g.HTML(), []string{"\x1b", "\u202e", "<script", "<img", "&amp; <"}},
	} {
		for _, f := range c.forbidden {
			if strings.Contains(c.text, f) {
				t.Errorf("%s has %q:\n%s", name, f, c.text)
			}
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(g.SVG()))
	allowed := []string{"svg", "style", "rect", "text", "title", "line"}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && !slices.Contains(allowed, e.Name.Local) {
			t.Errorf("element %s", e.Name.Local)
		}
	}
}

// Nodes that miss a gateway are seen before the gateway reports it, if it can. And none of no nodes is verified.
func TestDownIsNotHealthy(t *testing.T) {
	p := peering("a", "b", health.Down, 0, gateway(1, health.Down, "a", tunnel(1, health.Healthy)))
	p.Gateways[0].Reason = "no echo from nodes"
	g := Of([]status.Peering{p})
	if v := g.Tunnels[0]; v.State != health.Down || v.Views[0].Reason != "no echo from nodes" {
		t.Errorf("%+v", v)
	}
	if dot := g.DOT(); strings.Contains(dot, colour(health.Healthy)) {
		t.Errorf("green in\n%s", dot)
	}
}

// A large cluster stays readable, and the nodes that are not verified have names.
func TestManyNodes(t *testing.T) {
	g := Of(several())
	text := g.Text(nil)
	if lines := strings.Count(text, "\n"); lines > 20 {
		t.Errorf("%d lines", lines)
	}
	for _, want := range []string{"nodes: 498 of 500 verified", "a-7: not verified by b, c", "a-301: not verified by b"} {
		if !strings.Contains(text, want) || !strings.Contains(g.SVG(), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	silent := several()[:1]
	for i := range silent[0].Nodes {
		silent[0].Nodes[i].Ready = false
	}
	if text := Of(silent).Text(nil); strings.Count(text, "\n") > 70 || !strings.Contains(text, "and 450 more that are not verified") {
		t.Errorf("a cluster of which no node is verified:\n%s", text)
	}
}

// A tunnel has the worst state that either side sees, and none of an old report.
func TestStateOfTunnels(t *testing.T) {
	g := Of(bothSides())
	if len(g.Clusters) != 2 || len(g.Tunnels) != 4 {
		t.Fatalf("%d clusters, %d tunnels", len(g.Clusters), len(g.Tunnels))
	}
	for _, tunnel := range g.Tunnels {
		want := health.Healthy
		if tunnel.From == (End{"a", 2}) && tunnel.To == (End{"b", 1}) {
			want = health.Down
		}
		if tunnel.State != want || len(tunnel.Views) != 2 {
			t.Errorf("%+v", tunnel)
		}
	}
	old := bothSides()[:1]
	age := time.Minute
	old[0].Gateways[0].ReportAge = &age
	if g := Of(old); g.Tunnels[0].State != health.Unknown || g.Tunnels[2].State != health.Down {
		t.Errorf("%+v", g.Tunnels)
	}
}

// The record of a peering may have another name than the peer.
func TestOtherName(t *testing.T) {
	all := bothSides()
	all[1].Peer = "alpha"
	if g := Of(all); len(g.Clusters) != 2 || len(g.Tunnels) != 4 {
		t.Errorf("%+v", g)
	}
}
