//go:build linux

package helper

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
)

// testEchoes are those of a gateway with two nodes.
func testEchoes() (*gatewayEchoes, *metrics) {
	m := newMetrics()
	g := newGatewayEchoes(slog.New(slog.DiscardHandler), m, gatewayAddress)
	g.view = gatewayView{fabric: testFabric(), peering: testPeering(), nodes: []reportedNode{
		{Node: records.Node{Name: "n1", Internal: netip.MustParseAddr("10.80.0.7")}},
		{Node: records.Node{Name: "n2", Internal: netip.MustParseAddr("10.80.0.8")}},
	}}
	return g, m
}

// echoOf is what a node sends.
func echoOf(from string, r echo.Report) (netip.AddrPort, echo.Message) {
	return netip.AddrPortFrom(netip.MustParseAddr(from), 6092), echo.Message{Content: echo.Content{Report: r}}
}

// TestLearn: a peer names addresses of nodes, real ones, in its external CIDR's first half; this side calls them by
// the range in which it sees them.
func TestLearn(t *testing.T) {
	g, m := testEchoes()
	g.learn(netip.Addr{})
	for _, refused := range []string{"10.70.128.1", "10.71.0.7", "10.244.1.5", "127.0.0.1"} {
		g.learn(netip.MustParseAddr(refused))
	}
	if len(g.peerNodes()) != 0 {
		t.Errorf("learned %v", g.peerNodes())
	}
	if n := m.total(t, "liqonet_peer_values_ignored_total"); n != 4 {
		t.Errorf("%v values counted as refused, want 4", n)
	}
	g.learn(netip.MustParseAddr("10.70.0.9"))
	g.learn(netip.MustParseAddr("10.70.0.3"))
	if got := g.peerNodes(); !slices.Equal(got, addrs("10.71.0.3", "10.71.0.9")) {
		t.Errorf("learned %v", got)
	}
}

func TestPeerNodesAgeAndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes()
		first := netip.MustParseAddr("10.70.0.200")
		g.learn(first)
		told := g.peerNodes()
		for i := range 20 {
			g.learn(netip.AddrFrom4([4]byte{10, 70, 1, byte(i)}))
		}
		if got := g.peerNodes(); len(got) != peerNodesMost || !slices.Contains(got, told[0]) {
			t.Errorf("told %v: want %d, with %v still among them", got, peerNodesMost, told)
		}
		time.Sleep(peerNodeLife / 2) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
		g.learn(first)
		time.Sleep(peerNodeLife / 2) //nolint:forbidigo // as above
		if got := g.peerNodes(); !slices.Equal(got, told) {
			t.Errorf("told %v: want %v, the only one that was named lately", got, told)
		}
	})
}

// TestFromNode: a node speaks for itself, and only one of this cluster is heard.
func TestFromNode(t *testing.T) {
	g, _ := testEchoes()
	internal := netip.MustParseAddr("10.80.0.7")
	report := echo.Report{Internal: internal, OverlayRTT: time.Millisecond, Proven: true, ProofAge: time.Second, ProofRTT: 2 * time.Millisecond}
	g.fromNode(echoOf("10.80.0.8", report)) // speaks for another
	stranger := report
	stranger.Internal = netip.MustParseAddr("10.80.0.99")
	g.fromNode(echoOf("10.80.0.99", stranger))
	if len(g.nodes) != 0 {
		t.Errorf("noted %v", g.nodes)
	}
	g.fromNode(echoOf("10.80.0.7", report))
	p := g.nodes[internal]
	if p.rtt != time.Millisecond || p.proofRTT != 2*time.Millisecond || p.echo.Sub(p.proof) != time.Second {
		t.Errorf("noted %+v", p)
	}
	var s records.Status
	g.describe(&s, g.view)
	if len(s.Nodes) != 2 || s.Nodes[0].LastProof.IsZero() || !s.Nodes[1].LastEcho.IsZero() {
		t.Errorf("status %+v: want n1 heard and proven, n2 never heard", s.Nodes)
	}
}

// TestNameNode names the live nodes to the peer in turn, by their external addresses.
func TestNameNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes()
		if got := g.nameNode(); got.Node.IsValid() {
			t.Errorf("named %s although no node has been heard", got.Node)
		}
		hear := func(internal string) {
			g.fromNode(echoOf(internal, echo.Report{Internal: netip.MustParseAddr(internal)}))
		}
		hear("10.80.0.7")
		hear("10.80.0.8")
		got := addrs(g.nameNode().Node.String(), g.nameNode().Node.String(), g.nameNode().Node.String())
		if got[0] == got[1] || got[0] != got[2] || !slices.Contains(got, netip.MustParseAddr("10.70.0.7")) || !slices.Contains(got, netip.MustParseAddr("10.70.0.8")) {
			t.Errorf("named %v: want both in turn", got)
		}
		time.Sleep(freshNodeEcho) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
		hear("10.80.0.8")
		for range 3 {
			if got := g.nameNode().Node; got != netip.MustParseAddr("10.70.0.8") {
				t.Errorf("named %s although only 10.70.0.8 is alive", got)
			}
		}
	})
}

// TestRenewal: a silent peer makes the tunnel renew, soon but not again and again.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes()
		renewals := 0
		lose := func(consecutive int) {
			g.lost(consecutive)
			synctest.Wait()
		}
		lose(gatewayPatience) // there is no tunnel yet
		g.useTunnel(func(context.Context) error { renewals++; return nil })
		lose(gatewayPatience - 1)
		if renewals != 0 {
			t.Errorf("%d renewals after %d losses", renewals, gatewayPatience-1)
		}
		lose(gatewayPatience)
		lose(gatewayPatience + 1)
		if renewals != 1 {
			t.Errorf("%d renewals at once, want 1", renewals)
		}
		time.Sleep(renewEvery) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
		lose(gatewayPatience + 2)
		if renewals != 2 {
			t.Errorf("%d renewals after %s of silence, want 2", renewals, renewEvery)
		}
		g.answered(echo.Message{}, time.Millisecond)
		lose(gatewayPatience)
		if renewals != 3 {
			t.Errorf("%d renewals, want one at once after an answer", renewals)
		}
	})
}
