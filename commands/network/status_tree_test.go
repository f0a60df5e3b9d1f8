package network

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// tunnelOf returns a tunnel in a recent report.
func tunnelOf(number int, state health.State) status.Tunnel {
	t := status.Tunnel{PeerGateway: number, State: state, Endpoint: "192.0.2.1:30000", RTT: secondsOf(600 * time.Microsecond), RxBytes: 1536, TxBytes: 10}
	if state != health.Healthy {
		t.Reason = "the peer's gateway answered last 8s ago"
	}
	return t
}

func gatewayOf(number int, state health.State, cluster string, tunnels ...status.Tunnel) status.Gateway {
	return status.Gateway{
		Number: number, State: state, Pod: fmt.Sprintf("gateway-%d", number), Node: fmt.Sprintf("%s-%d", cluster, number), ReportAge: secondsOf(time.Second), Tunnels: tunnels,
	}
}

func peeringOf(cluster, peer string, state health.State, nodes int, gateways ...status.Gateway) status.Peering {
	p := status.Peering{Cluster: cluster, Peer: peer, State: state, Gateways: gateways}
	if state != health.Healthy {
		p.Reason = "gateway 2: tunnel to gateway 1 of the peer: the peer's gateway answered last 8s ago"
	}
	for i := range nodes {
		p.Gateways[0].Nodes = append(p.Gateways[0].Nodes, status.NodeState{Name: fmt.Sprintf("%s-%d", cluster, i+1), Ready: true})
	}
	return p
}

// twoGateways returns a peering in both clusters, with two gateways each, one of which is cut off.
func twoGateways() []status.Peering {
	pair := func(state health.State) []status.Tunnel {
		return []status.Tunnel{tunnelOf(1, state), tunnelOf(2, health.Healthy)}
	}
	a := peeringOf("a", "b", health.Degraded, 2,
		gatewayOf(1, health.Healthy, "a", pair(health.Healthy)...), gatewayOf(2, health.Degraded, "a", pair(health.Down)...))
	b := peeringOf("b", "a", health.Healthy, 3, gatewayOf(1, health.Healthy, "b", pair(health.Healthy)...), gatewayOf(2, health.Healthy, "b", pair(health.Healthy)...))
	return []status.Peering{a, b}
}

// severalPeers returns the peerings of a cluster with 500 nodes.
func severalPeers() []status.Peering {
	b := peeringOf("a", "b", health.Degraded, 500, gatewayOf(1, health.Healthy, "a", tunnelOf(1, health.Healthy)))
	b.Gateways[0].Nodes[6].Ready, b.Gateways[0].Nodes[300].Ready = false, false
	c := peeringOf("a", "c", health.Connecting, 500, status.Gateway{Number: 1, State: health.Connecting})
	c.Gateways[0].Nodes[6].Ready = false
	return []status.Peering{b, c}
}

// hostileNames returns peerings whose names have a special meaning in a terminal, in Mermaid and in HTML.
func hostileNames() []status.Peering {
	names := []string{`x"]; a["<script>alert(1)</script>`, "c\\\" %%{init: {}}%% `**b**` <img src=x>&amp;", "n\x1b[2J\n└─ gateway 9: healthy \u202e"}
	p := peeringOf(names[0], names[1], health.Down, 1, gatewayOf(1, health.Down, names[2], tunnelOf(1, health.Down)))
	p.Gateways[0].Nodes[0] = status.NodeState{Name: names[2]}
	p.Reason, p.Gateways[0].Pod, p.Gateways[0].Tunnels[0].Reason = names[2], names[0], names[1]
	return []status.Peering{p}
}

// treeOf returns the output of `network status -o tree` for peerings.
func treeOf(t *testing.T, all []status.Peering) string {
	t.Helper()
	var b strings.Builder
	o := statusOptions{Options: here(), output: ui.FormatTree}
	require.NoError(t, o.print(&b, statusAnswer{Peerings: all}))
	return b.String()
}

func TestTreeAndMermaid(t *testing.T) {
	for name, all := range map[string][]status.Peering{"both": twoGateways(), "several": severalPeers(), "hostile": hostileNames(), "none": nil} {
		golden.Check(t, "mermaid-"+name+".golden", mermaid(all))
		if name != "none" {
			golden.Check(t, "tree-"+name+".golden", treeOf(t, all))
		}
	}
	if text := treeOf(t, nil); text != "no peerings\n" {
		t.Errorf("%q", text)
	}
	for output, begins := range map[string]string{"TREE": "cluster a\n", "mermaid": "flowchart LR\n"} {
		all := peerings()[:1]
		all[0].Cluster = "a"
		if out, err := statusOf(t, all, "-o", output); err != nil || !strings.HasPrefix(out, begins) {
			t.Errorf("%s: %v\n%s", output, err, out)
		}
	}
}

// TestNotesOfTree: warnings follow the tree; reasons are part of it.
func TestNotesOfTree(t *testing.T) {
	all := peerings()
	all[0].Cluster, all[1].Cluster = "a", "a"
	text := treeOf(t, all)
	if strings.Count(text, all[1].Reason) != 1 || !strings.Contains(text, "b: warning: ") {
		t.Error(text)
	}
	var coloured strings.Builder
	o := statusOptions{Options: here(), output: ui.FormatTree, coloured: true}
	if err := o.print(&coloured, statusAnswer{Peerings: all}); err != nil || !strings.Contains(coloured.String(), "\x1b[32mhealthy") {
		t.Errorf("%v, %q", err, coloured.String())
	}
}

// TestNamesAreEscaped: a name cannot end its label or line, nor add markup.
func TestNamesAreEscaped(t *testing.T) {
	for text, forbidden := range map[string][]string{
		treeOf(t, hostileNames()): {"\x1b", "\u202e", "\n└─ gateway 9"},
		mermaid(hostileNames()):   {"\x1b", "\u202e", "<script", "<img", "%%", "`", "]; a["},
	} {
		for _, f := range forbidden {
			if strings.Contains(text, f) {
				t.Errorf("%q in\n%s", f, text)
			}
		}
	}
}

// TestDownIsNotHealthy: a gateway that no node reaches cannot report this. Its tunnels are down, and a cluster without
// nodes is not healthy.
func TestDownIsNotHealthy(t *testing.T) {
	p := peeringOf("a", "b", health.Down, 0, gatewayOf(1, health.Down, "a", tunnelOf(1, health.Healthy)))
	p.Gateways[0].Reason = "no echo from nodes"
	all := []status.Peering{p}
	if text := treeOf(t, all); !strings.Contains(text, "tunnel to gateway 1: down: no echo from nodes") {
		t.Error(text)
	}
	if text := mermaid(all); strings.Contains(text, "#2a8a43") {
		t.Errorf("green in\n%s", text)
	}
}

// TestManyNodes: the tree of a large cluster is short, and lists nodes that are not verified.
func TestManyNodes(t *testing.T) {
	text := treeOf(t, severalPeers())
	if lines := strings.Count(text, "\n"); lines > 20 {
		t.Errorf("%d lines", lines)
	}
	for _, want := range []string{"nodes: 498 of 500 verified", "a-7: not verified by b, c", "a-301: not verified by b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	silent := severalPeers()[:1]
	for i := range silent[0].Gateways[0].Nodes {
		silent[0].Gateways[0].Nodes[i].Ready = false
	}
	if text := treeOf(t, silent); strings.Count(text, "\n") > 70 || !strings.Contains(text, "and 450 more that are not verified") {
		t.Errorf("a cluster of which no node is verified:\n%s", text)
	}
}

// TestStateOfTunnels: a tunnel in an old report is unknown. A diagram shows the worse state of both clusters, even if
// the names of the records differ.
func TestStateOfTunnels(t *testing.T) {
	all := twoGateways()
	all[1].Peer = "alpha"
	text := mermaid(all)
	if strings.Count(text, "===") != 4 || strings.Count(text, `|"down"|`) != 1 || strings.Contains(text, "not read") {
		t.Error(text)
	}
	old := twoGateways()[:1]
	old[0].Gateways[0].ReportAge = secondsOf(time.Minute)
	if text := treeOf(t, old); strings.Count(text, ": unknown: the gateway's last report is too old") != 2 || !strings.Contains(text, "gateway 1: down") {
		t.Error(text)
	}
}
