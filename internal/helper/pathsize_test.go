//go:build linux

package helper

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
)

// TestWhoMayMeasure: the nodes of the cluster may, and at the server the one who sends the tunnel's packets.
func TestWhoMayMeasure(t *testing.T) {
	peer, node, stranger := "192.0.2.7", "172.31.1.11", "172.31.1.99"
	for _, role := range []records.Role{records.Server, records.Client} {
		g, _ := testEchoes()
		g.view.peering.Role = role
		g.view.nodes[0].OverlaySources = map[string]netip.Addr{
			g.view.peering.Name: netip.MustParseAddr(node), "another": netip.MustParseAddr(stranger),
		}
		asks := func(address string) bool { return g.knows(netip.AddrPortFrom(netip.MustParseAddr(address), 4711)) }
		if asks(peer) {
			t.Errorf("%s: the peer is answered before it is heard", role)
		}
		g.measure(g.view, netip.AddrPortFrom(netip.MustParseAddr(peer), 51840))
		g.measure(g.view, netip.AddrPort{}) // the tunnel is renewed
		if got := asks(peer); got != (role == records.Server) {
			t.Errorf("%s: the peer is answered: %t", role, got)
		}
		if !asks(node) || asks(stranger) {
			t.Errorf("%s: a node is answered: %t, a stranger: %t", role, asks(node), asks(stranger))
		}
	}
}

// TestSizesThatAreTold come into the status where they can be true: a server believes the client, and gateways their
// nodes.
func TestSizesThatAreTold(t *testing.T) {
	g, m := testEchoes()
	g.view.peering.Role = records.Server
	tell := func(p echo.Path) {
		g.fromPeer(netip.AddrPort{}, echo.Message{Content: echo.Content{Path: p}})
		from, message := echoOf("10.80.0.7", echo.Report{Internal: netip.MustParseAddr("10.80.0.7")})
		message.Content.Path = p
		g.nodes.answer(from, message)
	}
	for told, want := range map[echo.Path]records.PathSize{
		{}:                        {},
		{Asked: true}:             {Asked: true},
		{Asked: true, Size: 1400}: {Asked: true, MTU: 1400},
		{Asked: true, Size: 575}:  {},
	} {
		tell(told)
		var s records.Status
		g.describe(&s, g.view)
		if s.Path != want || s.Nodes[0].Path != want || s.Nodes[1].Path != (records.PathSize{}) {
			t.Errorf("told %+v: status %+v, node %+v, want %+v", told, s.Path, s.Nodes[0].Path, want)
		}
	}
	if n := m.total(t, "liqonet_peer_values_ignored_total"); n != 2 {
		t.Errorf("%v values counted as refused, want 2", n)
	}
}
