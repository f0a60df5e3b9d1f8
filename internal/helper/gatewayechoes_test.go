//go:build linux

package helper

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/netops/echo"
)

// testView returns the view of a gateway with two nodes.
func testView() gatewayView {
	return gatewayView{id: firstGateway("b"), fabric: testFabric(), peering: testPeering(), nodes: []reportedNode{
		{Node: &records.Node{Name: "n1", Internal: netip.MustParseAddr("10.80.0.7")}},
		{Node: &records.Node{Name: "n2", Internal: netip.MustParseAddr("10.80.0.8")}},
	}}
}

// testEchoes returns the echoes of a gateway with a view, without sockets.
func testEchoes(v gatewayView) (*gatewayEchoes, *metrics) {
	m := newMetrics()
	g := newGatewayEchoes(slog.New(slog.DiscardHandler), m, testGateway().PodIP, "n9", nil)
	g.update(v)
	return g, m
}

// echoOf returns the echo of a node.
func echoOf(from string, r echo.Report) (netip.AddrPort, echo.Message) {
	return netip.AddrPortFrom(netip.MustParseAddr(from), 6092), echo.Message{Content: echo.Content{Report: r}}
}

// TestLearn checks that a peer can name real addresses of nodes in the first half of its external CIDR only, and that
// they are remapped.
func TestLearn(t *testing.T) {
	g, m := testEchoes(testView())
	g.peers.learn(netip.Addr{})
	for _, refused := range []string{"10.70.128.1", "10.71.0.7", "10.244.1.5", "127.0.0.1"} {
		g.peers.learn(netip.MustParseAddr(refused))
	}
	if len(g.peers.current()) != 0 {
		t.Errorf("learned %v", g.peers.current())
	}
	if n := m.total(t, "liqonet_peer_values_ignored_total"); n != 4 {
		t.Errorf("%v values counted as refused, want 4", n)
	}
	g.peers.learn(netip.MustParseAddr("10.70.0.9"))
	g.peers.learn(netip.MustParseAddr("10.70.0.3"))
	if got := g.peers.current(); !slices.Equal(got, parsed.Addresses("10.71.0.3", "10.71.0.9")) {
		t.Errorf("learned %v", got)
	}
}

func TestPeerNodesAgeAndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		first := netip.MustParseAddr("10.70.0.200")
		g.peers.learn(first)
		told := g.peers.current()
		for i := range 20 {
			g.peers.learn(netip.AddrFrom4([4]byte{10, 70, 1, byte(i)}))
		}
		if got := g.peers.current(); len(got) != peerNodesMost || !slices.Contains(got, told[0]) {
			t.Errorf("told %v: want %d, with %v still among them", got, peerNodesMost, told)
		}
		time.Sleep(peerNodeLife / 2) //nolint:forbidigo // synctest's clock
		g.peers.learn(first)
		time.Sleep(peerNodeLife / 2) //nolint:forbidigo // as above
		if got := g.peers.current(); !slices.Equal(got, told) {
			t.Errorf("told %v: want %v, the only one that was named lately", got, told)
		}
	})
}

// TestFromNode checks that a node can report for itself only, and must be one of this cluster.
func TestFromNode(t *testing.T) {
	g, _ := testEchoes(testView())
	internal := netip.MustParseAddr("10.80.0.7")
	report := echo.Report{Internal: internal, OverlayRTT: time.Millisecond, Verified: true, VerifiedAge: time.Second, VerifiedRTT: 2 * time.Millisecond}
	g.nodes.answer(echoOf("10.80.0.8", report)) // reports for another node
	stranger := report
	stranger.Internal = netip.MustParseAddr("10.80.0.99")
	g.nodes.answer(echoOf("10.80.0.99", stranger))
	if len(g.nodes.paths) != 0 {
		t.Errorf("noted %v", g.nodes.paths)
	}
	g.nodes.answer(echoOf("10.80.0.7", report))
	p := g.nodes.paths[internal]
	if p.rtt != time.Millisecond || p.proofRTT != 2*time.Millisecond || p.Echo.Sub(p.proof) != time.Second {
		t.Errorf("noted %+v", p)
	}
	if nodes := g.nodes.statuses(); len(nodes) != 2 || nodes[0].LastProof.IsZero() || !nodes[1].LastEcho.IsZero() {
		t.Errorf("status %+v: want n1 heard and proven, n2 never heard", nodes)
	}
}

// TestNameNode checks that the gateway sends its live nodes to the peer in turn, by their external addresses.
func TestNameNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		if got := g.nodes.name(); got.Node.IsValid() {
			t.Errorf("named %s although no node has been heard", got.Node)
		}
		hear := func(internal string) {
			g.nodes.answer(echoOf(internal, echo.Report{Internal: netip.MustParseAddr(internal)}))
		}
		hear("10.80.0.7")
		hear("10.80.0.8")
		got := parsed.Addresses(g.nodes.name().Node.String(), g.nodes.name().Node.String(), g.nodes.name().Node.String())
		if got[0] == got[1] || got[0] != got[2] || !slices.Contains(got, netip.MustParseAddr("10.70.0.7")) || !slices.Contains(got, netip.MustParseAddr("10.70.0.8")) {
			t.Errorf("named %v: want both in turn", got)
		}
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		hear("10.80.0.8")
		for range 3 {
			if got := g.nodes.name().Node; got != netip.MustParseAddr("10.70.0.8") {
				t.Errorf("named %s although only 10.70.0.8 is alive", got)
			}
		}
	})
}

// TestWitnesses checks that a few live nodes are witnesses and stay so; the gateway's own only if there is no other.
func TestWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodePaths(newMetrics(), "n0")
		var all []reportedNode
		for i := range 10 {
			all = append(all, reportedNode{Node: &records.Node{Name: fmt.Sprintf("n%d", i), Internal: netip.AddrFrom4([4]byte{10, 80, 0, byte(i)})}})
		}
		hear := func(acknowledge bool, numbers ...int) (asked []int) {
			for _, i := range numbers {
				from, m := echoOf(all[i].Internal.String(), echo.Report{Internal: all[i].Internal})
				m.Content.Witness = acknowledge
				if n.answer(from, m).Witness {
					asked = append(asked, i)
				}
			}
			return asked
		}
		n.update(gatewayView{nodes: all})
		if n.watched() || len(n.witnesses) != 0 {
			t.Error("witnesses before any node was heard")
		}
		if asked := hear(true, 0); !slices.Equal(asked, []int{0}) || n.watched() {
			t.Errorf("asked %v: want the gateway's own node, and that it is not relied on", asked)
		}
		if asked := hear(false, 5); !slices.Equal(asked, []int{5}) || n.watched() {
			t.Errorf("asked %v: want another node at once, and that it is not relied on before it says that it is a witness", asked)
		}
		if asked := hear(true, 0, 5, 6, 7, 8); !slices.Equal(asked, []int{5, 6, 7}) || !n.watched() {
			t.Errorf("asked %v: want three, and the own node no more", asked)
		}
		if asked := hear(true, 0, 1, 2, 5, 6, 7, 8); !slices.Equal(asked, []int{5, 6, 7}) {
			t.Errorf("asked %v: want the same", asked)
		}
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		hear(true, 1, 6, 7)
		n.watched()
		if asked := hear(true, 1, 6, 7); !slices.Equal(asked, []int{1, 6, 7}) {
			t.Errorf("asked %v: want another one for that which fell silent", asked)
		}
	})
}
