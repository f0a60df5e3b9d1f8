package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// Hosts behind the router. The second is not exposed, although it is in the same network.
var (
	exposedHost = netops.Exposed{Host: outsideAddress, Address: netip.MustParseAddr("10.70.128.1")}
	hiddenHost  = netip.MustParseAddr("198.51.100.8")
)

// outsiders creates both hosts, in one namespace.
func (w *world) outsiders() namespace {
	w.t.Helper()
	ns := w.outside()
	ns.IP(fmt.Sprintf("addr add %s/24 dev eth0", hiddenHost))
	serve(ns, outsideAddress, "exposed")
	serve(ns, hiddenHost, "hidden")
	pour(ns, outsideAddress)
	return ns
}

// pourPort is the port at which a host sends endless data to clients.
const pourPort = 7001

func pour(ns namespace, on netip.Addr) {
	ns.t.Helper()
	ns.ServeTCP(netip.AddrPortFrom(on, pourPort).String(), func(c net.Conn) {
		var err error
		for chunk := make([]byte, 64<<10); err == nil; {
			_, err = c.Write(chunk)
		}
	})
}

// download reads some MiB from such a host without pauses.
func download(t *testing.T, from namespace, host netip.Addr) {
	t.Helper()
	const size, pause = 4 << 20, 20 * time.Second
	c, err := from.Dial(t.Context(), "tcp4", netip.AddrPortFrom(host, pourPort))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	for got, buf := 0, make([]byte, 64<<10); got < size; {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(pause)))
		n, err := c.Read(buf)
		if err != nil {
			t.Errorf("tcp from %s: stalled after %d bytes: %v", host, got, err)
			return
		}
		got += n
	}
}

// expose changes the exposed hosts of a cluster's gateway. Like the helper, it deletes the connections of removed
// hosts.
func (g *testGateway) expose(hosts ...netops.Exposed) {
	g.t.Helper()
	gone := make([]netip.Prefix, len(g.config.Exposed))
	for i, e := range g.config.Exposed {
		gone[i] = cidr.Single(e.Address)
	}
	g.config.Exposed = hosts
	g.follow()
	require.NoError(g.t, g.kernel.FlushConntrack(gone))
}

// TestExposedHosts: B reaches a host outside the clusters that A exposes, and no other host.
func TestExposedHosts(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		outside := a.outsiders()
		gateway := a.gateways[0]
		gateway.Chain("clear", "out", "filter hook postrouting priority 500",
			fmt.Sprintf("oifname eth0 ip saddr != %s counter", gateway.config.Pod),
			fmt.Sprintf("oifname eth0 ip daddr %s counter", externalCIDR))
		target := at(swapped(exposedHost.Address, a.seenExternal))
		silent(t, b.nodes[0].pod, target)
		gateway.expose(exposedHost)
		t.Run("exposed", func(t *testing.T) { testExposed(t, a, b) })
		t.Run("sizes", func(t *testing.T) { testExposedSizes(t, a, b) })
		t.Run("no other", func(t *testing.T) { testNotExposed(t, a, b, outside) })
		t.Run("fails closed", func(t *testing.T) { testExposedClosed(t, a, b) })
		t.Run("withdrawn", func(t *testing.T) { testWithdrawn(t, a, b) })
	})
}

// testExposed sends from each pod and node of B, one of which has the address of A's gateway. The source address at the
// host is that of the node of A's gateway.
func testExposed(t *testing.T, a, b side) {
	target := swapped(exposedHost.Address, a.seenExternal)
	twin := b.attach(0, a.inPods(0, a.gatewayNumber(0)))
	for _, from := range []namespace{b.nodes[0].pod, b.nodes[1].pod, b.nodes[0].namespace, b.nodes[1].namespace, twin} {
		expect(t, from, at(target), "exposed", a.node(0))
		from.Run("ping", "-q", "-c1", "-w20", target.String())
	}
	expectAll(t, a, b)
	expectAll(t, b, a)
}

// testExposedSizes sends much data in both directions with and without the clamp, and verifies ICMP errors of routers
// and of the gateway.
func testExposedSizes(t *testing.T, a, b side) {
	target := at(swapped(exposedHost.Address, a.seenExternal))
	for _, clamp := range []bool{true, false} {
		for _, s := range []side{a, b} {
			s.gateways[0].config.ClampMSS = clamp
			s.gateways[0].follow()
		}
		for _, n := range b.nodes {
			upload(t, n.pod, target)
			download(t, n.pod, target.Addr())
		}
	}
	a.router.IP("link set outside mtu 1300")
	defer a.router.IP("link set outside mtu 1500")
	if got := pathMTU(t, datagrams(t, b.nodes[1].pod, target, unix.IP_PMTUDISC_DO)); got != 1300 {
		t.Errorf("path MTU %d, want that of the router before the host, 1300", got)
	}
	// Three hops: B's node, B's gateway, A's gateway.
	shown := b.nodes[1].pod.Run("sh", "-c", "ping -c1 -w20 -t3 "+target.Addr().String()+" || :")
	if !strings.Contains(shown, "Time to live exceeded") {
		t.Errorf("A's gateway does not report an exceeded TTL:\n%s", shown)
	}
}

// testNotExposed sends to hosts with all addresses that B may try. A host cannot open connections to B either.
func testNotExposed(t *testing.T, a, b side, outside namespace) {
	silent(t, b.nodes[0].pod, at(swapped(netip.MustParseAddr("10.70.128.2"), a.seenExternal)))
	for _, target := range []netip.Addr{exposedHost.Host, hiddenHost, a.node(1)} {
		restore := b.addPeerRange(netops.Mapping{Real: cidr.Single(target), Seen: cidr.Single(netip.MustParseAddr("10.99.0.1"))})
		dropped(t, b.nodes[1].pod, at(netip.MustParseAddr("10.99.0.1")), func() int { return a.gateways[0].drops("to-cluster") })
		restore()
	}
	// The host's router has a wrong route to B by the gateway pod.
	gateway := a.inPods(0, a.gatewayNumber(0))
	a.router.IP(fmt.Sprintf("route add %s via %s", b.pod(1), a.node(0)))
	a.nodes[0].IP(fmt.Sprintf("route add %s via %s", b.pod(1), gateway))
	dropped(t, outside, at(b.pod(1)), func() int { return a.gateways[0].drops("uplink") })
	a.nodes[0].IP(fmt.Sprintf("route del %s via %s", b.pod(1), gateway))
	a.router.IP(fmt.Sprintf("route del %s via %s", b.pod(1), a.node(0)))
}

// testExposedClosed removes objects one by one: no packet leaves the gateway with an address of B, and no other host
// answers.
func testExposedClosed(t *testing.T, a, b side) {
	g, target := a.gateways[0], at(swapped(exposedHost.Address, a.seenExternal))
	for name, command := range map[string][]string{
		"no rule to the host":  {"ip", "rule", "del", "priority", "52", "iif", netops.Tunnel},
		"no rule to the peer":  {"ip", "rule", "del", "priority", "52", "iif", netops.PodLink},
		"no route to the peer": {"ip", "route", "del", "10.244.0.0/16", "table", "7601"},
		"no destination":       {"nft", "flush", "chain", "ip", netops.Table, "destination"},
		"no source":            {"nft", "flush", "chain", "ip", netops.Table, "source"},
		"nothing forwarded":    {"nft", "flush", "chain", "ip", netops.Table, "forward"},
	} {
		t.Run(name, func(t *testing.T) {
			before := g.counted("clear", "out")
			g.Run(command[0], command[1:]...)
			silent(t, b.nodes[1].pod, target)
			if g.counted("clear", "out") != before {
				t.Error("packets of the peer left in the clear")
			}
			g.follow()
			expect(t, b.nodes[1].pod, target, "exposed", a.node(0))
		})
	}
}

// testWithdrawn keeps flows to the host open: they end when the exposure is removed. Another host with the same
// external address gets new flows.
func testWithdrawn(t *testing.T, a, b side) {
	g, target := a.gateways[0], at(swapped(exposedHost.Address, a.seenExternal))
	var open []net.Conn
	for _, network := range []string{"tcp4", "udp4"} {
		c, err := b.nodes[1].pod.Dial(t.Context(), network, target)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = question(c, "?", answerWait)
		require.NoError(t, err)
		open = append(open, c)
	}
	g.expose()
	for _, c := range open {
		expectEnd(t, "after the withdrawal", c, b.router)
	}
	silent(t, b.nodes[0].pod, target)
	g.expose(netops.Exposed{Host: hiddenHost, Address: exposedHost.Address})
	expect(t, b.nodes[0].pod, target, "hidden", a.node(0))
	expectMoved(t, "datagrams to another host", open[1], "hidden")
	g.expose()
	silent(t, b.nodes[0].pod, target)
}
