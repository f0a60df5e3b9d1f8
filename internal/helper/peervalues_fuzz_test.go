//go:build linux

package helper

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// FuzzPeerMessages sends arbitrary messages from the peer's gateway, and from nodes, to a gateway. It passes on only
// addresses of the peer's nodes to its own nodes, few of them, and its state is bounded.
func FuzzPeerMessages(f *testing.F) {
	node, _ := echo.Message{Kind: echo.Request, Size: echo.MinSize, Content: echo.Content{
		Node: netip.MustParseAddr("10.70.0.9"), Report: echo.Report{Internal: netip.MustParseAddr("10.80.0.7"), Verified: true},
	}}.AppendTo(nil)
	f.Add(node, uint8(3))
	endpoint, _ := echo.Message{Kind: echo.Reply, Size: echo.MinSize, Content: echo.Content{
		Endpoint: netip.MustParseAddr("10.243.255.250"), Epoch: 1, Newest: 2,
	}}.AppendTo(nil)
	f.Add(endpoint, uint8(255))
	nodes, _ := echo.Message{Kind: echo.Request, Size: echo.MinSize, Content: echo.Content{Nodes: 1, NoWay: true}}.AppendTo(nil)
	f.Add(nodes, uint8(2))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, packet []byte, times uint8) {
		v := testView()
		g, _ := testEchoes(v)
		m, err := echo.Parse(packet)
		if err != nil {
			return
		}
		for range int(times) * 2 {
			from := netip.AddrPortFrom(m.Content.Report.Internal, netops.EchoPort)
			g.tunnel(1).answer(from, m)
			g.tunnel(1).answeredBy(m, 0)
			g.nodes.answer(from, m)
			if m.Content.Node.Is4() { // and all fields after it
				m.Content.Node = m.Content.Node.Next()
			}
			if m.Content.Endpoint.Is4() {
				m.Content.Endpoint = m.Content.Endpoint.Next()
			}
		}
		tried := g.endpoints.current()
		for _, a := range tried {
			if !a.IsGlobalUnicast() || cidr.Contains(slices.Concat(v.fabric.PodCIDRs, v.peering.Seen()), a) {
				t.Errorf("looks for the server at %s", a)
			}
		}
		if len(tried) > endpointsMost {
			t.Errorf("looks for the server at %d addresses", len(tried))
		}
		told := g.peers.current()
		for _, a := range told {
			if !cidr.Lower(v.peering.Peer.ExternalCIDR.Seen).Contains(a) {
				t.Errorf("tells its nodes of %s", a)
			}
		}
		if len(told) > peerNodesMost || len(g.peers.named) > peerNodesKept || len(g.nodes.paths) > len(v.nodes) {
			t.Errorf("tells of %d nodes, keeps %d names and %d paths", len(told), len(g.peers.named), len(g.nodes.paths))
		}
	})
}
