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

// oneWayMost bounds the time until packets cross again: each end renews the session after two seconds without packets,
// and after two more.
const oneWayMost = 20 * time.Second

// TestOneWay checks that a client changes to another endpoint if packets by the first one cross in one direction only.
// WireGuard's own timers take up to three minutes.
func TestOneWay(t *testing.T) {
	t.Parallel()
	a, b, _ := udpClusters(t)
	connectBoth(a, b)
	b.awaitEndpoints(a.NodeAddress(0), a.NodeAddress(1))
	var used netip.Addr
	for _, direction := range []string{"d", "s"} {
		used = b.awaitOtherEndpoint(used)
		drops := fmt.Sprintf("ip %[1]saddr %[2]s udp %[1]sport %[3]d-%[4]d", direction, used, clusters.ServerPort, clusters.ServerPort+7)
		client := b.Nodes[b.Gateways[0].Node]
		dropPackets(client, drops, "drop")
		begin := time.Now()
		a.awaitAllProven(begin.Add(time.Second)) // until then, answers may be under way
		b.awaitAllProven(begin.Add(time.Second))
		took := time.Since(begin)
		removeDrops(client)
		t.Logf("%q dropped: packets cross after %.1f s", drops, took.Seconds())
		if took > oneWayMost {
			t.Errorf("%q dropped: packets cross after %s, want at most %s", drops, took, oneWayMost)
		}
	}
}

// awaitOtherEndpoint waits until the client's tunnel leads to another address than the given one, and returns it.
func (c *testCluster) awaitOtherEndpoint(than netip.Addr) (now netip.Addr) {
	c.t.Helper()
	wait.Until(c.t, "the tunnel leads elsewhere", joining, func() bool {
		g, _ := records.Decode[records.Gateway](c.Get(c.Gateways[0].ID().Name()).Data[records.DataKey])
		now = g.Endpoint.Addr()
		return now.IsValid() && now != than
	})
	return now
}
