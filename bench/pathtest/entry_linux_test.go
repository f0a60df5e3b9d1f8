package pathtest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// entryAgain is longer than the interval at which a tunnel retries an entry.
const entryAgain = 11 * time.Second

// TestEntry checks that a returning tunnel enters through the node of the server's gateway if that node forwards the
// tunnel's port, and loses nothing by it. The client's record has the other node.
func TestEntry(t *testing.T) {
	t.Parallel()
	a, b, _ := udpClusters(t)
	b.Elsewhere = true
	for _, c := range []*testCluster{a, b} {
		c.AddGateway()
	}
	at := func(node, gateway int) netip.AddrPort {
		return netip.AddrPortFrom(a.NodeAddress(node), uint16(clusters.ServerPort+8*(gateway-1)))
	}
	dropPackets(a.Nodes[0], fmt.Sprintf("meta l4proto udp ct original ip daddr %s ct original proto-dst %d-%d", a.NodeAddress(0), clusters.ServerPort, clusters.ServerPort+7), "drop")
	connectBoth(a, b)
	b.awaitEntries(at(1, 1), at(1, 2))
	tried := time.Now() // at the latest

	removeDrops(a.Nodes[0])
	first := a.Gateways[0]
	dropPackets(a.Nodes[0], fmt.Sprintf("ip daddr %[1]s udp dport 51840-51848; ip saddr %[1]s udp sport 51840-51848", first.Address()), "drop")
	begin := time.Now()
	a.awaitUnused(first, true, begin)
	f := startFlood(a, b)
	<-time.After(entryAgain - time.Since(tried))
	removeDrops(a.Nodes[0])
	b.awaitEntries(at(0, 1), at(1, 2))
	a.awaitUnused(first, false, time.Now())
	f.await(t)
	lost, sent, _ := f.stop()
	t.Logf("%d of %d packets lost", lost, sent)
	if lost*100 > undisturbedLoss*sent {
		t.Errorf("want at most %d %% lost", undisturbedLoss)
	}
}

// awaitEntries waits until the tunnels of a client's first gateway have these endpoints.
func (c *testCluster) awaitEntries(first, second netip.AddrPort) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		g, err := records.Decode[records.Gateway](c.Get(c.Gateways[0].ID().Name()).Data[records.DataKey])
		if err == nil && (len(g.OtherEndpoints) != 1 || g.Endpoint != first || g.OtherEndpoints[0] != second) {
			err = fmt.Errorf("the tunnels lead to %v and %v, want %v and %v", g.Endpoint, g.OtherEndpoints, first, second)
		}
		return err
	})
}
