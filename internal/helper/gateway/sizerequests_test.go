//go:build linux

package gateway

import (
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/echo"
)

// TestPathMTURequests checks that a gateway answers probes of the path MTU from nodes of its cluster and, at the
// server, from the sender of the tunnel's packets.
func TestPathMTURequests(t *testing.T) {
	peer, node, stranger := "192.0.2.7", "172.31.1.11", "172.31.1.99"
	for _, role := range []records.Role{records.Server, records.Client} {
		v := testView()
		v.peering.Role = role
		v.nodes[0].OverlaySources = map[records.GatewayID]netip.Addr{
			sample.FirstGateway(v.peering.Name): netip.MustParseAddr(node), sample.FirstGateway("another"): netip.MustParseAddr(stranger),
		}
		g, _ := testEchoes(v)
		asks := func(address string) bool {
			return g.knows(netip.AddrPortFrom(netip.MustParseAddr(address), 4711), echo.Message{})
		}
		if asks(peer) {
			t.Errorf("%s: the peer is answered before its first request", role)
		}
		g.tunnel(1).measure(nil, netip.AddrPortFrom(netip.MustParseAddr(peer), 51840), false)
		g.tunnel(1).measure(nil, netip.AddrPort{}, false) // the tunnel is renewed
		if got := asks(peer); got != (role == records.Server) {
			t.Errorf("%s: the peer is answered: %t", role, got)
		}
		if !asks(node) || asks(stranger) {
			t.Errorf("%s: a node is answered: %t, a stranger: %t", role, asks(node), asks(stranger))
		}
	}
}

// TestRoleOfAnEarlierRecord checks that a client that becomes the server drops its measurements and the server's
// address.
func TestRoleOfAnEarlierRecord(t *testing.T) {
	v, peer := testView(), netip.MustParseAddrPort("192.0.2.7:51840")
	v.peering.Role = records.Client
	g, _ := testEchoes(v)
	e := g.tunnel(1)
	e.far.Observe(100, time.Now())
	e.far.at = peer
	socket, err := echo.Listen(echo.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	t.Cleanup(func() { e.size.Close(); _ = socket.Close() })
	e.size.Measure(socket, netip.MustParseAddrPort("127.0.0.1:9")) // does not answer
	wait.Until(t, "a measurement", wait.Timeout, func() bool { return e.size.Path().Asked })
	g.update(v)
	if !e.content().Path.Asked || e.far.at != peer {
		t.Errorf("with the same role: path %+v, far end %+v", e.content().Path, &e.far)
	}
	v.peering.Role = records.Server
	g.update(v)
	e.measure(nil, peer, false)
	if e.content().Path != (echo.Path{}) || !e.far.Is(0) || e.far.at.IsValid() {
		t.Errorf("with another role: path %+v, far end %+v", e.content().Path, &e.far)
	}
}

// TestReceivedPathSizes checks that plausible received sizes are in the status: a server takes the client's, and
// gateways those of their nodes.
func TestReceivedPathSizes(t *testing.T) {
	v := testView()
	v.peering.Role = records.Server
	g, m := testEchoes(v)
	report := func(p echo.Path) {
		g.tunnel(1).answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Path: p}})
		from, message := echoOf("10.80.0.7", echo.Report{Node: 7})
		message.Content.Path = p
		g.nodes.answer(from, message)
	}
	for path, want := range map[echo.Path]records.PathSize{
		{}:                        {},
		{Asked: true}:             {Asked: true},
		{Asked: true, Size: 1400}: {Asked: true, MTU: 1400},
		{Asked: true, Size: 575}:  {},
	} {
		report(path)
		var s records.TunnelStatus
		g.tunnel(1).describe(&s)
		if nodes := g.nodes.statuses(); s.Path != want || nodes[0].Path != want || nodes[1].Path != (records.PathSize{}) {
			t.Errorf("path %+v: status %+v, node %+v, want %+v", path, s.Path, nodes[0].Path, want)
		}
	}
	if n := sample.Total(t, m.Registry, "liqonet_peer_values_ignored_total"); n != 2 {
		t.Errorf("%v values counted as refused, want 2", n)
	}
}

// TestNewsTriggerReports checks that a gateway reports immediately what connect waits for: the size of a path, and that
// a node was verified for the first time. What nodes and peer repeat can wait.
func TestNewsTriggerReports(t *testing.T) {
	v := testView()
	v.peering.Role = records.Server
	g, _ := testEchoes(v)
	path := echo.Path{Asked: true, Size: 1400}
	ofPeer := func(p echo.Path) {
		g.tunnel(1).answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Path: p}})
	}
	ofNode := func(p echo.Path, verified bool) {
		from, message := echoOf("10.80.0.7", echo.Report{Node: 7, Verified: verified})
		message.Content.Path = p
		g.nodes.answer(from, message)
	}
	for _, step := range []struct {
		name string
		do   func()
		news bool
	}{
		{"first echo of the peer", func() { ofPeer(echo.Path{}) }, false},
		{"size of the peer's path", func() { ofPeer(path) }, true},
		{"the same size", func() { ofPeer(path) }, false},
		{"first echo of a node", func() { ofNode(echo.Path{}, false) }, false},
		{"size of the node's path", func() { ofNode(path, false) }, true},
		{"first verification", func() { ofNode(path, true) }, true},
		{"another verification", func() { ofNode(path, true) }, false},
		{"the client's own measurement", g.tunnel(1).size.Changed, true},
	} {
		step.do()
		select {
		case <-g.news:
			if !step.news {
				t.Errorf("%s: a report follows", step.name)
			}
		default:
			if step.news {
				t.Errorf("%s: no report follows", step.name)
			}
		}
	}
}
