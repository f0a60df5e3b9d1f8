package pathtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// uplinkCut is how long a node has no uplink: longer than the silence after which gateways are left.
const uplinkCut = 2 * time.Second

// randomFaults strike a gateway of a cluster, or a node.
var randomFaults = []struct {
	name   string
	strike func(c *testCluster, gateway, node int)
}{
	{"a gateway's helper killed", func(c *testCluster, gateway, _ int) {
		c.Gateways[gateway].Helper.Kill()
		c.Start(c.Gateways[gateway])
	}},
	{"a node's helper killed", func(c *testCluster, _, node int) {
		c.NodeHelpers[node].Kill()
		c.StartNode(node)
	}},
	{"a gateway's links down", func(c *testCluster, gateway, _ int) { c.Gateways[gateway].Run("sh", "-ec", linksDown) }},
	{"a node's links down", func(c *testCluster, _, node int) { c.Nodes[node].Run("sh", "-ec", linksDown) }},
	{"a gateway's tables flushed", func(c *testCluster, gateway, _ int) { c.Gateways[gateway].Run("nft", "flush table ip liqonet") }},
	{"a node's tables flushed", func(c *testCluster, _, node int) { c.Nodes[node].Run("nft", "flush table ip liqonet") }},
	{"a node's uplink cut", func(c *testCluster, _, node int) {
		dropPackets(c.Nodes[node], "ip daddr 172.31.0.0/16; ip saddr 172.31.0.0/16", "drop")
		<-time.After(uplinkCut)
		removeDrops(c.Nodes[node])
	}},
}

const linksDown = `all=$(ip -o link | grep -o 'lqn-[^:@ ]*' | sort -u); [ -n "$all" ]; for l in $all; do ip link set "$l" down; done`

// TestRandomFaults is the short form of `make chaos`: two clusters with three gateways each, and each kind of fault
// once, in a random order and at a random place. After each fault packets of all flows cross again, and a TCP stream
// lasts through all of them. LIQONET_SEED selects the order and the places.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	seed := randomSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	a, b, _ := twoClusters(t)
	for _, c := range []*testCluster{a, b} {
		c.AddGateway()
		c.AddGateway()
	}
	connectBoth(a, b)
	late := lateness()
	f := startFlood(b, a)
	stream := openStream(a, b)
	for _, i := range r.Perm(len(randomFaults)) {
		fault, c, gateway, node := randomFaults[i], []*testCluster{a, b}[r.IntN(2)], r.IntN(3), r.IntN(nodesPerCluster)
		t.Logf("%s: gateway %d, node %d of %s", fault.name, gateway+1, node+1, c.Name)
		fault.strike(c, gateway, node)
		struck := time.Now()
		f.await(t)
		a.awaitAnswered(struck)
		b.awaitAnswered(struck)
		stream.await(t)
	}
	lost, sent, silent := f.stop()
	limit := 20*time.Second + lateFactor*late() // of TestGatewayFaults
	t.Logf("%d of %d packets lost, %.2f s at most without any of %v", lost, sent, silent.Seconds(), limit)
	if silent > limit {
		t.Errorf("%v without any packet, want less than %v", silent, limit)
	}
}

// randomSeed returns a seed, and logs it.
func randomSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(rand.Uint32())
	if text := os.Getenv("LIQONET_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LIQONET_SEED=%d repeats these faults", seed)
	return seed
}

// lastingStream is a TCP connection between pods of two clusters, over which a byte crosses each moment, and back.
type lastingStream struct {
	echoed atomic.Int64
	broken atomic.Pointer[error]
}

const streamPort = 7011

// openStream opens a stream that lasts until the test ends.
func openStream(from, to *testCluster) *lastingStream {
	t := from.t
	listener := to.Pods[1].For(t).Listen(fmt.Sprint(":", streamPort))
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn) // the other end notices
	}()
	conn := dialIn(t, from.Pods[0], "tcp4", netip.AddrPortFrom(to.RemappedPod(1), streamPort))
	t.Cleanup(func() { _ = conn.Close() })
	s := &lastingStream{}
	go every(t.Context(), 10*time.Millisecond, func() {
		if _, err := conn.Write([]byte{1}); err != nil {
			s.broken.CompareAndSwap(nil, &err)
		}
	})
	go func() {
		for buf := make([]byte, 100); ; {
			n, err := conn.Read(buf)
			if err != nil {
				s.broken.CompareAndSwap(nil, &err)
				return
			}
			s.echoed.Add(int64(n))
		}
	}()
	return s
}

// await waits until bytes have come back.
func (s *lastingStream) await(t *testing.T) {
	t.Helper()
	before := s.echoed.Load()
	wait.Succeeds(t, joining, func() error {
		if err := s.broken.Load(); err != nil {
			t.Fatalf("the stream broke: %v", *err)
		}
		if s.echoed.Load() < before+10 {
			return fmt.Errorf("the stream stands still after %d bytes", s.echoed.Load())
		}
		return nil
	})
}
