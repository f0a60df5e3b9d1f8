package pathtest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

const (
	floodTime = 2 * time.Second
	// floodTimes is the maximum number of measurements: other work on the machine's cores makes instructions slower.
	floodTimes = 6
	// floodShare is the share of a core that a helper may take during a flood: half of the cost of reading 27,000
	// messages a second, floodRate. A slower machine sends fewer, and takes more for each.
	floodShare    = 0.15
	floodRate     = 27000.0
	ignoredEchoes = "liqonet_echo_ignored_total"
	discard       = 9 // a port without a listener (RFC 863)
)

// TestFlood sends valid echoes and other messages to a node's helper, and then to a gateway's, as fast as one sender
// can: the kernel drops most, each ignored one is counted, and the helper has little work.
func TestFlood(t *testing.T) {
	a, b, node, gateway := watchedClusters(t)
	servePods(t, a, b)
	messages := floodOf(t)
	t.Run("node", func(t *testing.T) {
		reports, err := b.Reports()
		require.NoError(t, err)
		target := netip.AddrPortFrom(records.NodeAddress(clusters.InternalCIDR, reports[b.NodeName(0)].Number), netops.EchoPort)
		sendFor(t, gateway.ns, target, 1, [][]byte{make([]byte, 60000)})
		cheap(t, func() (share, base float64) {
			return flooded(t, node, dropsOf("echo-peer"), gateway.ns, target, messages), 0
		})
		if n := node.counter(t, ignoredEchoes); n == 0 {
			t.Error("no message is counted as ignored")
		}
		expectAll(a, b)
		expectAll(b, a)
	})
	t.Run("gateway", func(t *testing.T) {
		local, _ := b.Record(a.Cluster).TunnelAddresses(1, 1)
		end := local.Addr()
		// With a tunnel in userspace the helper decrypts all packets, whatever they contain: that is the tunnel's
		// share.
		cheap(t, func() (share, base float64) {
			base = flooded(t, gateway, dropsOf("input"), a.Gateways[0].Namespace, netip.AddrPortFrom(end, discard), messages)
			return flooded(t, gateway, dropsOf("echo"), a.Gateways[0].Namespace, netip.AddrPortFrom(end, netops.EchoPort), messages), base
		})
		expectAll(a, b)
		expectAll(b, a)
	})
}

// dropsOf returns the name of the counter of a chain's dropped packets.
func dropsOf(chain string) string {
	return fmt.Sprintf("liqonet_dropped_packets_total{chain=%q}", chain)
}

// floodOf returns messages that a peer may send: valid echoes and others.
func floodOf(t *testing.T) [][]byte {
	t.Helper()
	request, err := echo.Message{Kind: echo.Request, Size: 100}.AppendTo(nil)
	require.NoError(t, err)
	reply, err := echo.Message{Kind: echo.Reply, Size: 100}.AppendTo(nil)
	require.NoError(t, err)
	return [][]byte{request, reply, append([]byte("not an echo"), request...), request[:20], {}}
}

// cheap measures until the share of a core that a helper takes during a flood, scaled to a core that sends floodRate,
// is small compared to its share without one.
func cheap(t *testing.T, measure func() (share, base float64)) {
	t.Helper()
	atMost := floodShare
	if testing.Short() {
		atMost *= 2 // in a guest every system call takes longer
	}
	least := 1.0
	for range floodTimes {
		share, base := measure()
		if least = min(least, share-base); least <= atMost {
			return
		}
	}
	t.Errorf("the helper took %.1f %% of a core, want at most %.0f %%", 100*least, 100*atMost)
}

// flooded floods a helper and returns its share of a core. The kernel must drop some of the packets.
func flooded(t *testing.T, helper watched, chain string, from netns.Namespace, target netip.AddrPort, messages [][]byte) float64 {
	t.Helper()
	before, dropped, begin := helper.used(t), helper.counter(t, chain), time.Now()
	sent := sendFor(t, from, target, floodTime, messages)
	took := time.Since(begin)
	rate := float64(sent) / took.Seconds()
	share := float64(helper.used(t)-before) / float64(took) * min(1, rate/floodRate)
	n := helper.counter(t, chain) - dropped
	t.Logf("to port %d: %.0f messages a second, %.0f of %d dropped: %.1f %% of a core", target.Port(), rate, n, sent, 100*share)
	if n == 0 {
		t.Errorf("of %d messages none was dropped in the kernel", sent)
	}
	return share
}

// sendFor sends messages in turn from a namespace and returns their number.
func sendFor(t *testing.T, from netns.Namespace, to netip.AddrPort, during time.Duration, messages [][]byte) (sent int) {
	t.Helper()
	c := dialIn(t, from, "udp4", to)
	defer func() { _ = c.Close() }()
	for end := time.Now().Add(during); sent == 0 || time.Now().Before(end); {
		for _, m := range messages {
			_, _ = c.Write(m) // a full buffer does not matter
			sent++
		}
	}
	return sent
}

// idleShare is the share of a core that an idle node's helper may take. On an idle machine it takes 0.06 to 0.09 %, and
// more than the limit if it reads the foreign routes and chains of crowd.
const idleShare = 0.003

// fullPasses is the interval of a helper's full passes.
const fullPasses = 30 * time.Second

// idleWindows is the number of measurements: other work on the machine's cores, such as tests of other packages, makes
// instructions slower, never faster, and delays echoes, for which a gateway renews its tunnel.
const idleWindows = 6

// TestIdle measures helpers that only probe their path, on a node with many foreign objects. With -short, as in a guest
// whose every system call takes longer, it only logs the result.
func TestIdle(t *testing.T) {
	t.Parallel()
	measured := fullPasses + fullPasses/6 // a full pass
	if testing.Short() {
		measured = fullPasses / 3
	}
	_, b, node, gateway := watchedClusters(t)
	ofEach := 100
	if testing.Short() {
		ofEach = 10
	}
	crowd(b.Nodes[0], ofEach)
	node.rest(t)
	most := float64(measured/fullPasses) + 2
	for range idleWindows {
		passes := node.counter(t, passesMetric) // outside of the measurement: the request has a cost, too
		before := [2]time.Duration{node.used(t), gateway.used(t)}
		<-time.After(measured)
		share := func(i int, w watched) float64 { return float64(w.used(t)-before[i]) / float64(measured) }
		ofNode, ofGateway := share(0, node), share(1, gateway)
		passes = node.counter(t, passesMetric) - passes
		t.Logf("of a core: node %.3f %%, gateway %.3f %%; %v passes", 100*ofNode, 100*ofGateway, passes)
		if passes <= most && (ofNode <= idleShare || testing.Short()) {
			return
		}
	}
	t.Errorf("in no window of %s at most %v passes and %.2f %% of a core for the node's helper", measured, most, 100*idleShare)
}

// crowd adds foreign objects: a thousand neighbours, addresses, nexthops and nftables chains, and ofEach routes and
// rules for each of these.
func crowd(ns netns.Namespace, ofEach int) {
	var ip, nft strings.Builder
	ip.WriteString("link add crowd type bridge\nlink set crowd up\naddr add 198.18.0.1/15 dev crowd\n")
	nft.WriteString("table ip crowd {\n")
	for i := range 1000 {
		fmt.Fprintf(&ip, "nexthop add id %d dev crowd\n", 1000+i)
		fmt.Fprintf(&ip, "neigh add 198.18.%d.%d lladdr 02:00:00:00:%02x:%02x dev crowd nud permanent\n", 1+i/250, 1+i%250, i/250, i%250)
		fmt.Fprintf(&ip, "addr add 198.19.%d.%d/32 dev crowd\n", 1+i/250, 1+i%250)
		fmt.Fprintf(&nft, "chain c%d {\n", i)
		for j := range ofEach {
			fmt.Fprintf(&ip, "route add 100.%d.%d.%d/32 dev crowd proto 186\n", 64+j, i/250, i%250)
			fmt.Fprintf(&nft, "ip daddr 100.%d.%d.%d counter accept\n", 64+j, i/250, i%250)
		}
		nft.WriteString("}\n")
	}
	nft.WriteString("}\n")
	ns.Feed(ip.String(), "ip", "-batch", "-")
	ns.Feed(nft.String(), "nft", "-f", "-")
}
