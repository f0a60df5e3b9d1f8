//go:build linux

package gateway

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/choices"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// serverView returns the view of a server's gateway.
func serverView() view {
	v := testView()
	v.peering.Role = records.Server
	return v
}

// echoNaming returns an echo with an endpoint.
func echoNaming(endpoint string) echo.Message {
	return echo.Message{Content: echo.Content{Endpoint: netip.MustParseAddr(endpoint)}}
}

// TestPeerEndpoints checks that a client takes few addresses from the server, and no reserved ones, none of its own
// cluster, and none of those by which it reaches the peer.
func TestPeerEndpoints(t *testing.T) {
	g, m := testEchoes(testView())
	refused := []string{
		"127.0.0.1", "0.0.0.0", "0.1.2.3", "169.254.169.254", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "fe80::1", "2001:db8::1", "::ffff:192.0.2.1",
		"10.244.1.5", "10.96.0.1", "10.70.0.9", "10.80.0.7", "10.71.0.9",
	}
	for _, a := range refused {
		g.tunnel(1).answer(netip.AddrPort{}, echoNaming(a))
		g.tunnel(1).answeredBy(echoNaming(a), 0)
	}
	if got := g.endpoints.current(); len(got) > 0 {
		t.Errorf("took %v", got)
	}
	if n := sample.Total(t, m.Registry, "liqonet_peer_values_ignored_total"); n != float64(2*len(refused)) {
		t.Errorf("%v values counted as refused, want %d", n, 2*len(refused))
	}
	g.tunnel(1).answer(netip.AddrPort{}, echoNaming("192.0.2.2"))
	g.tunnel(1).answeredBy(echoNaming("192.0.2.1"), 0)
	if got := g.endpoints.current(); !slices.Equal(got, parsed.Addresses("192.0.2.1", "192.0.2.2")) {
		t.Errorf("took %v", got)
	}
	for i := range 5000 { // each a different one
		g.tunnel(1).answer(netip.AddrPort{}, echoNaming(fmt.Sprintf("198.51.%d.%d", i/250, 1+i%250)))
		if got := g.endpoints.current(); len(got) > records.MaxPeerEndpoints {
			t.Fatalf("took %d addresses", len(got))
		}
	}
	// Its nodes, later nodes, and API servers; but not the network of its nodes if the server's are in it, too.
	own := testView()
	own.apiServers = parsed.Addresses("203.0.113.250")
	own.nodes[0].Address, own.nodes[0].OverlaySources = netip.MustParseAddr("192.0.2.50"), map[records.GatewayID]netip.Addr{own.id: netip.MustParseAddr("192.0.2.51")}
	own.fabric.NodeNetworks = parsed.Prefixes("192.0.2.0/24", "203.0.113.0/25") // the record's endpoint is 192.0.2.7
	among, _ := testEchoes(own)
	for _, a := range []string{"192.0.2.50", "192.0.2.51", "203.0.113.250", "203.0.113.5", "192.0.2.1", "203.0.113.200"} {
		among.tunnel(1).answer(netip.AddrPort{}, echoNaming(a))
	}
	if got := among.endpoints.current(); !slices.Equal(got, parsed.Addresses("192.0.2.1", "203.0.113.200")) {
		t.Errorf("took %v of its own nodes and API servers", got)
	}
	// New ranges of the cluster also apply to known addresses.
	v := testView()
	v.fabric.PodCIDRs = append(slices.Clone(v.fabric.PodCIDRs), netip.MustParsePrefix("198.51.0.0/16"))
	g.update(v)
	if got := g.endpoints.current(); len(got) > 0 {
		t.Errorf("kept %v of a range that pods have", got)
	}
}

// TestPeerEndpointsLeave checks that an address expires while others arrive, and stays while nothing arrives.
func TestPeerEndpointsLeave(t *testing.T) {
	g, _ := testEchoes(testView())
	for range endpointLife {
		g.tunnel(1).answer(netip.AddrPort{}, echoNaming("192.0.2.1"))
	}
	for range endpointLife {
		g.tunnel(1).answer(netip.AddrPort{}, echoNaming("192.0.2.2"))
	}
	if got := g.endpoints.current(); !slices.Equal(got, parsed.Addresses("192.0.2.1", "192.0.2.2")) {
		t.Errorf("has %v", got)
	}
	g.tunnel(1).answer(netip.AddrPort{}, echoNaming("192.0.2.2"))
	if got := g.endpoints.current(); !slices.Equal(got, parsed.Addresses("192.0.2.2")) {
		t.Errorf("has %v: want the one that is named", got)
	}
}

// TestPeerEndpointsUnasked checks that a server takes no addresses, nor does a client whose endpoint the user has set.
// Neither sends its location, and the client sends none of its nodes, whatever endpoint the server reports as in use.
func TestPeerEndpointsUnasked(t *testing.T) {
	fixed := testView()
	fixed.peering.Settings.EndpointHost = new("gateway.example")
	for name, v := range map[string]view{"server": serverView(), "fixed": fixed} {
		v.nodes[0].Address = netip.MustParseAddr("192.0.2.99")
		g, _ := testEchoes(v)
		g.nodes.answer(echoOf("10.80.0.7", echo.Report{Node: 7}))
		tunnel := g.tunnel(1)
		tunnel.measure(nil, netip.MustParseAddrPort("192.0.2.7:30000"), false)
		claimed := "192.0.2.1"
		if name == "fixed" {
			claimed = "192.0.2.99"
		}
		answer := tunnel.answer(netip.AddrPort{}, echoNaming(claimed))
		if got := g.endpoints.current(); len(got) > 0 || answer.Endpoint.IsValid() || tunnel.content().Endpoint.IsValid() {
			t.Errorf("%s: took %v, named %v", name, got, answer.Endpoint)
		}
	}
}

// TestNameEndpoints checks that a server sends its live nodes in turn, to a client that uses the address of a node. The
// gateway's own is always among them, and marked as such.
func TestNameEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serverView()
		v.nodes[0].Address, v.nodes[1].Address = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		v.nodes[1].Name = "n9"
		own := v.nodes[1].Address
		g, _ := testEchoes(v)
		of := func(endpoint string) netip.Addr {
			return g.tunnel(1).answer(netip.AddrPort{}, echoNaming(endpoint)).Endpoint
		}
		if got := of("192.0.2.1"); got.IsValid() {
			t.Errorf("named %v although no node has sent an echo", got)
		}
		g.nodes.answer(echoOf("10.80.0.7", echo.Report{Node: 7}))
		g.nodes.answer(echoOf("10.80.0.8", echo.Report{Node: 8}))
		if got := of("203.0.113.1"); got.IsValid() {
			t.Errorf("named %v to a client that uses a load balancer", got)
		}
		seen := []netip.Addr{of("192.0.2.2"), of("192.0.2.2"), g.tunnel(1).content().Endpoint}
		if !slices.Contains(seen, v.nodes[0].Address) || !slices.Contains(seen, v.nodes[1].Address) {
			t.Errorf("named %v", seen)
		}
		for i := range 2 * sentMost { // nodes before the gateway's own
			internal := netip.AddrFrom4([4]byte{10, 80, 1, byte(i)})
			v.nodes = slices.Insert(v.nodes, 0, reportedNode{Node: &records.Node{Name: fmt.Sprintf("x%d", i), Address: netip.AddrFrom4([4]byte{192, 0, 2, 100 + byte(i)})}, Internal: internal})
			g.nodes.update(v)
			g.nodes.answer(echoOf(internal.String(), echo.Report{Node: nodeNumber(internal.String())}))
		}
		named := map[netip.Addr]bool{}
		for range sentMost {
			c := g.tunnel(1).content()
			named[c.Endpoint] = c.OwnNode
		}
		if len(named) != sentMost || !named[own] {
			t.Errorf("named %v, true for its own: want %d with %v", named, sentMost, own)
		}
	})
}

// TestEnterBy checks that a tunnel moves only to addresses that a client takes, and not while it is in use, nor again
// immediately.
func TestEnterBy(t *testing.T) {
	for _, c := range []struct {
		names string
		own   bool
		inUse bool
		moved time.Duration // time since
		port  uint16        // port of the tunnel's packets
		pod   uint32
		want  bool
	}{
		{"192.0.2.1", true, false, entryEvery, 30000, 7, true},
		{"192.0.2.1", true, false, entryEvery, 30000, 6, false}, // another pod with its key
		{"192.0.2.1", true, false, entryEvery, 53, 7, false},    // the server's choice
		{"192.0.2.1", true, false, entryEvery / 2, 30000, 7, false},
		{"192.0.2.1", true, true, entryEvery, 30000, 7, false},
		{"192.0.2.1", false, false, entryEvery, 30000, 7, false},
		{"192.0.2.7", true, false, entryEvery, 30000, 7, false}, // it enters there
		{"127.0.0.1", true, false, entryEvery, 30000, 7, false},
		{"10.244.1.5", true, false, entryEvery, 30000, 7, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, _ := testEchoes(testView())
			tunnel := g.tunnel(1)
			tunnel.Answered(choices.Fine, time.Now())
			for c.inUse && tunnel.Standing() != membership.Usable {
				choices.Elapse(membership.Moment)
				tunnel.Answered(choices.Fine, time.Now())
			}
			before := time.Now().Add(-c.moved)
			tunnel.source, tunnel.endpoints = netip.AddrPortFrom(netip.MustParseAddr("192.0.2.7"), c.port), []string{"server.example:30000"}
			tunnel.device, tunnel.moved = &farTunnel{}, before
			tunnel.far.Observe(7, time.Now())
			tunnel.learnEndpoint(echo.Content{Endpoint: netip.MustParseAddr(c.names), OwnNode: c.own, Epoch: c.pod})
			if got := tunnel.moved != before; got != c.want {
				t.Errorf("%+v: turns there: %t", c, got)
			}
		})
	}
}

// TestPeerEndpointsOfEarlierProcess checks that a process uses the addresses recorded by the one before, with the same
// checks.
func TestPeerEndpointsOfEarlierProcess(t *testing.T) {
	g := sample.Gateway()
	g.PeerEndpoints = parsed.Addresses("192.0.2.1", "10.244.1.5", "127.0.0.1")
	l := &loop{Helper: Helper{Env: helper.Env{Namespace: sample.Namespace}, ID: sample.FirstGateway("b")}, location: tools.NewStore(tools.MetaNamespaceKeyFunc)}
	require.NoError(t, l.location.Add(sample.GatewayMap(t, "b", g)))
	l.echoes, _ = testEchoes(testView())
	l.readKnownEndpoints()
	l.echoes.update(testView())
	if got := l.echoes.endpoints.current(); !slices.Equal(got, parsed.Addresses("192.0.2.1")) {
		t.Errorf("goes on with %v", got)
	}
}
