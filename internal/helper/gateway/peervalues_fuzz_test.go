//go:build linux

package gateway

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// FuzzPeerMessages sends arbitrary messages from the peer's gateway, and from nodes, to a gateway. It passes on only
// addresses of the peer's nodes to its own nodes, few of them, and its state is bounded.
func FuzzPeerMessages(f *testing.F) {
	node, _ := echo.Message{Kind: echo.Request, Size: echo.MinSize, Content: echo.Content{
		Node: 9, Report: echo.Report{Node: 7, Verified: true},
	}}.AppendTo(nil)
	f.Add(node, uint8(3))
	endpoint, _ := echo.Message{Kind: echo.Reply, Size: echo.MinSize, Content: echo.Content{
		Endpoint: netip.MustParseAddr("10.243.255.250"), Epoch: 1, Newest: 2,
	}}.AppendTo(nil)
	f.Add(endpoint, uint8(255))
	ipv6, _ := echo.Message{Kind: echo.Reply, Size: echo.MinSize, Content: echo.Content{Endpoint: netip.MustParseAddr("2001:db8::1")}}.AppendTo(nil)
	f.Add(ipv6, uint8(20))
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
			from := netip.AddrPortFrom(cidr.Address(cidr.Number(v.fabric.InternalCIDR().Addr())+m.Content.Report.Node), netops.EchoPort)
			g.tunnel(1).answer(from, m)
			g.tunnel(1).answeredBy(m, 0)
			g.nodes.answer(from, m)
			m.Content.Node++
			if m.Content.Endpoint.IsValid() {
				m.Content.Endpoint = m.Content.Endpoint.Next()
			}
		}
		tried := g.endpoints.current()
		for _, a := range tried {
			if !a.Is4() || !a.IsGlobalUnicast() || cidr.Contains(slices.Concat(v.fabric.PodCIDRs, v.peering.Seen()), a) {
				t.Errorf("looks for the server at %s", a)
			}
		}
		if len(tried) > records.MaxPeerEndpoints {
			t.Errorf("looks for the server at %d addresses", len(tried))
		}
		sent := g.peers.current()
		for _, a := range sent {
			if !cidr.Lower(v.peering.Peer.ExternalCIDR().Seen).Contains(a) {
				t.Errorf("sends its nodes %s", a)
			}
		}
		if len(sent) > peerNodesMost || len(g.nodes.paths) > len(v.nodes) {
			t.Errorf("sends %d nodes, keeps %d paths", len(sent), len(g.nodes.paths))
		}
	})
}
