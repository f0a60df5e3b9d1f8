//go:build linux

package gateway

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
)

// testView returns the view of a gateway with two nodes.
func testView() view {
	return view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering(), nodes: []reportedNode{
		{Node: &records.Node{Name: "n1", Number: 7}, Internal: netip.MustParseAddr("10.80.0.7")},
		{Node: &records.Node{Name: "n2", Number: 8}, Internal: netip.MustParseAddr("10.80.0.8")},
	}}
}

// testEchoes returns the echoes of a gateway with a view, without sockets.
func testEchoes(v view) (*echoes, *helper.Metrics) {
	m := helper.NewMetrics()
	g := newEchoes(slog.New(slog.DiscardHandler), m, sample.Gateway().PodIP, "n9", nil)
	g.update(v)
	return g, m
}

// echoOf returns the echo of a node.
func echoOf(from string, r echo.Report) (netip.AddrPort, echo.Message) {
	return netip.AddrPortFrom(netip.MustParseAddr(from), 6092), echo.Message{Content: echo.Content{Report: r}}
}

// nodeNumber returns the number of a node with an internal address of the sample's fabric.
func nodeNumber(internal string) uint32 {
	return cidr.Offset(sample.Fabric().InternalCIDR(), netip.MustParseAddr(internal))
}

// TestLearn checks that a peer's node has an address in the first half of the peer's external CIDR as it is here, and
// that a number without one is ignored.
func TestLearn(t *testing.T) {
	g, m := testEchoes(testView())
	for _, refused := range []uint32{0, 1 << 15, 1 << 16, math.MaxUint32} {
		g.peers.learn(refused)
	}
	if len(g.peers.current()) != 0 {
		t.Errorf("learned %v", g.peers.current())
	}
	if n := sample.Total(t, m.Registry, "liqonet_peer_values_ignored_total"); n != 3 {
		t.Errorf("%v values counted as refused, want 3", n)
	}
	g.peers.learn(9)
	g.peers.learn(3)
	if got := g.peers.current(); !slices.Equal(got, parsed.Addresses("10.71.0.3", "10.71.0.9")) {
		t.Errorf("learned %v", got)
	}
}

// TestPeerNodesLeave checks that the peer's nodes that are no longer in its messages make room for others, and that the
// ones that are stay.
func TestPeerNodesLeave(t *testing.T) {
	g, _ := testEchoes(testView())
	const first = 200
	name := func(numbers ...uint32) {
		for i := range peerNodeLife {
			g.peers.learn(numbers[i%len(numbers)])
		}
	}
	name(first)
	stays := g.peers.current()
	for i := range uint32(2 * peerNodesMost) {
		g.peers.learn(256 + i)
	}
	if got := g.peers.current(); len(got) != peerNodesMost || !slices.Contains(got, stays[0]) {
		t.Errorf("sent %v: want %d, with %v still among them", got, peerNodesMost, stays)
	}
	name(first)
	if got := g.peers.current(); !slices.Equal(got, stays) {
		t.Errorf("sent %v: want %v, the only one in the latest messages", got, stays)
	}
	var all []uint32
	for i := range uint32(sentMost) {
		all = append(all, 300+i)
	}
	name(all...)
	name(all...)
	if got := g.peers.current(); len(got) != sentMost || slices.Contains(got, stays[0]) {
		t.Errorf("sent %v: want the %d that are named in turn", got, sentMost)
	}
	name(0)
	name(0)
	if got := g.peers.current(); len(got) > 0 {
		t.Errorf("sent %v, though the peer's gateway reaches no node", got)
	}
	name(all...)
	v := testView()
	v.peering.Peer.ExternalCIDRs[0].Seen = netip.MustParsePrefix("10.72.0.0/16")
	if g.update(v); len(g.peers.current()) > 0 {
		t.Errorf("kept %v, though the peer's external CIDR is %s", g.peers.current(), v.peering.Peer.ExternalCIDR().Seen)
	}
}

// TestFromNode checks that a node can report for itself only, and must be one of this cluster.
func TestFromNode(t *testing.T) {
	g, _ := testEchoes(testView())
	internal := netip.MustParseAddr("10.80.0.7")
	report := echo.Report{Node: 7, OverlayRTT: time.Millisecond, Verified: true, VerifiedAge: time.Second, VerifiedRTT: 2 * time.Millisecond}
	g.nodes.answer(echoOf("10.80.0.8", report)) // reports for another node
	stranger := report
	stranger.Node = 99
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
		t.Errorf("status %+v: want an echo and a proof of n1, none of n2", nodes)
	}
}

// TestNameNode checks that the gateway sends its live nodes to the peer in turn, by their numbers.
func TestNameNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		next := func() uint32 { return g.nodes.name().Node }
		if got := next(); got != 0 {
			t.Errorf("named %d although no node has sent an echo", got)
		}
		receive := func(number uint32) {
			g.nodes.answer(echoOf(fmt.Sprintf("10.80.0.%d", number), echo.Report{Node: number}))
		}
		receive(7)
		receive(8)
		if a, b, c := next(), next(), next(); a == b || a != c || a+b != 7+8 {
			t.Errorf("named %d, %d, %d: want both in turn", a, b, c)
		}
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		receive(8)
		for range 3 {
			if got := next(); got != 8 {
				t.Errorf("named %d although only 8 is alive", got)
			}
		}
	})
}

// TestWitnesses checks that a few live nodes are witnesses and stay so; the gateway's own only if there is no other.
func TestWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodePaths(helper.NewMetrics(), "n0", nil)
		var all []reportedNode
		for i := range 10 {
			all = append(all, reportedNode{Node: &records.Node{Name: fmt.Sprintf("n%d", i), Number: i}, Internal: netip.AddrFrom4([4]byte{10, 80, 0, byte(i)})})
		}
		receive := func(acknowledge bool, numbers ...int) (asked []int) {
			for _, i := range numbers {
				from, m := echoOf(all[i].Internal.String(), echo.Report{Node: nodeNumber(all[i].Internal.String())})
				m.Content.Witness = acknowledge
				if n.answer(from, m).Witness {
					asked = append(asked, i)
				}
			}
			return asked
		}
		n.update(view{fabric: sample.Fabric(), nodes: all})
		if n.watched() || len(n.witnesses) != 0 {
			t.Error("witnesses before any node has sent an echo")
		}
		if asked := receive(true, 0); !slices.Equal(asked, []int{0}) || n.watched() {
			t.Errorf("asked %v: want the gateway's own node, and that it is not relied on", asked)
		}
		if asked := receive(false, 5); !slices.Equal(asked, []int{5}) || n.watched() {
			t.Errorf("asked %v: want another node at once, and that it is not relied on before it says that it is a witness", asked)
		}
		if asked := receive(true, 0, 5, 6, 7, 8); !slices.Equal(asked, []int{5, 6, 7}) || !n.watched() {
			t.Errorf("asked %v: want three, and the own node no more", asked)
		}
		if asked := receive(true, 0, 1, 2, 5, 6, 7, 8); !slices.Equal(asked, []int{5, 6, 7}) {
			t.Errorf("asked %v: want the same", asked)
		}
		time.Sleep(health.NodeSilence) //nolint:forbidigo // synctest's clock
		receive(true, 1, 6, 7)
		n.watched()
		if asked := receive(true, 1, 6, 7); !slices.Equal(asked, []int{1, 6, 7}) {
			t.Errorf("asked %v: want another one for that which fell silent", asked)
		}
	})
}
