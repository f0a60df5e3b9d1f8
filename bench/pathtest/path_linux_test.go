package pathtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const servicePort = 7000

// TestTwoClusters connects two clusters with equal CIDRs by their helpers, and disconnects them.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	for _, k := range withPlain(combinations()) {
		t.Run(fmt.Sprintf("%s/%s", k.Overlay, k.WireGuard), func(t *testing.T) {
			a, b, _ := clustersOf(t, k)
			connectBoth(a, b)
			servePods(t, a, b)
			expectAll(a, b)
			expectAll(b, a)
			a.expectCalm()
			b.expectCalm()
			surviveHelpers(a, b)
			a.disconnect()
			b.disconnect()
		})
	}
}

// expectCalm checks that no helper reports a loss, a failure, or a drift, although nothing else changed the kernel, and
// that the logs are correct.
func (c *testCluster) expectCalm() {
	c.t.Helper()
	c.AwaitStatus(c.Gateways[0], func(s records.Status) error { // on a busy machine echoes are late
		if s.Loss != 0 {
			return fmt.Errorf("a share of %f of the echoes is lost", s.Loss)
		}
		return nil
	})
	s, err := c.status()
	require.NoError(c.t, err)
	nodes, err := c.Reports()
	require.NoError(c.t, err)
	if s.Drift.Times != 0 || len(s.Failed) != 0 {
		c.t.Errorf("cluster %s: status %+v: want no drift, no failure", c.Name, s)
	}
	for name, n := range nodes {
		if n.Drift.Times != 0 {
			c.t.Errorf("node %s: %+v: want no drift", name, n)
		}
	}
	for _, ns := range append(slices.Clone(c.Nodes[:]), c.Gateways[0].Namespace) {
		if n := counter(c.t, ns, driftMetric); n != 0 {
			c.t.Errorf("cluster %s: %v objects count as drift, and none was changed", c.Name, n)
		}
	}
	checkLogs(c.t, c)
}

// servePods is serve for the first pods of clusters.
func servePods(t *testing.T, clusters ...*testCluster) {
	for _, c := range clusters {
		for i := range nodesPerCluster {
			serve(t, c.Pods[i])
		}
	}
}

// serve answers connections to a pod with their source address.
func serve(t *testing.T, pod netns.Namespace) { pod.For(t).ServeSources(fmt.Sprint(":", servicePort)) }

// seenBy connects to a pod and returns the source address that it observed.
func seenBy(from netns.Namespace, pod netip.Addr) (source string, err error) {
	return from.Source(netip.AddrPortFrom(pod, servicePort))
}

// expectAll connects from all pods and nodes of a cluster to all pods of the other.
func expectAll(from, to *testCluster) {
	from.t.Helper()
	reports, err := from.Reports()
	require.NoError(from.t, err)
	for i := range from.Nodes {
		internal := records.NodeAddress(clusters.InternalCIDR, reports[from.NodeName(i)].Number).As4()
		external := clusters.PeerExternal.Addr().As4()
		copy(external[2:], internal[2:])
		for j := range to.Nodes {
			for _, source := range []struct {
				netns.Namespace
				want netip.Addr
			}{{from.Pods[i], from.RemappedPod(i)}, {from.Nodes[i], netip.AddrFrom4(external)}} {
				// On a busy machine echoes are late, and a gateway then renews its tunnel: it sends ICMP errors for a
				// moment, and a packet in flight is lost.
				var got string
				wait.Succeeds(from.t, joining, func() (err error) {
					got, err = seenBy(source.Namespace, to.RemappedPod(j))
					return err
				})
				if got != source.want.String() {
					from.t.Errorf("%s: a pod on %s sees %q, want %s", from.NodeName(i), to.NodeName(j), got, source.want)
				}
			}
			// The largest unfragmented packet: 28 are ICMP's and IP's headers. One of some seconds, as above.
			from.Pods[i].Run("ping", "-q", "-c1", "-w20", "-Mdo", fmt.Sprintf("-s%d", clusters.PathMTU-28), to.RemappedPod(j).String())
		}
	}
}

// surviveHelpers kills helpers. Their kernel state keeps working, except for a tunnel in the process. New helpers take
// over on the nodes, and open connections continue.
func surviveHelpers(a, b *testCluster) {
	flow := newOpenFlow(a, b)
	for _, c := range []*testCluster{a, b} {
		for _, p := range c.NodeHelpers {
			p.Kill()
		}
		if c.Kinds.WireGuard != records.Userspace {
			c.Gateways[0].Helper.Kill()
		}
	}
	expectAll(a, b)
	for _, c := range []*testCluster{a, b} {
		c.StartNodes()
		for _, n := range c.Nodes {
			awaitReady(c.t, n)
		}
	}
	flow.exchange()
}

// disconnect deletes the records and waits until the nodes have no liqonet state.
func (c *testCluster) disconnect() {
	c.t.Helper()
	for _, name := range []string{records.PeeringName("peer"), records.GatewayID{Peering: "peer", Number: 1}.Name(), records.FabricName, records.IPAMName} {
		err := c.API.CoreV1().ConfigMaps(records.DefaultNamespace).Delete(c.t.Context(), name, metav1.DeleteOptions{})
		if err != nil && (name != records.IPAMName || !apierrors.IsNotFound(err)) {
			c.t.Fatal(err)
		}
	}
	c.AwaitReports(func(n records.Node) error {
		if !n.Clean {
			return errors.New("it is not clean")
		}
		return nil
	})
	for i, n := range c.Nodes {
		left := n.Run("ip", "-o", "link") + n.Run("ip", "rule") + n.Run("ip", "nexthop") + n.Run("nft", "list", "tables")
		if strings.Contains(left, "lqn") || strings.Contains(left, "liqonet") || strings.Contains(left, "encap") {
			c.t.Errorf("node %s has left:\n%s", c.NodeName(i), left)
		}
	}
}

// openFlow is a TCP connection from a pod to a Service whose endpoint is a pod of the peer.
type openFlow struct {
	t              *testing.T
	client, server net.Conn
}

const standingPort = 7003

// serviceAddress is translated by each node, like kube-proxy does.
var serviceAddress = netip.MustParseAddr("10.96.0.10")

// newOpenFlow opens a connection and sends both ways.
func newOpenFlow(from, to *testCluster) *openFlow {
	t := from.t
	t.Helper()
	s := &openFlow{t: t}
	from.Nodes[1].Run("nft", fmt.Sprintf("table ip service { chain pre { type nat hook prerouting priority -100; "+
		"ip daddr %s tcp dport %d dnat to %s; }; }", serviceAddress, standingPort, to.RemappedPod(0)))
	listener := to.Pods[0].For(t).Listen(fmt.Sprint(":", standingPort))
	s.client = dialIn(t, from.Pods[1], "tcp4", netip.AddrPortFrom(serviceAddress, standingPort))
	t.Cleanup(func() { _ = s.client.Close() })
	var err error
	s.server, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.server.Close() })
	s.exchange()
	return s
}

// exchange sends an unsolicited answer: a node without the connection's conntrack entry would translate it to the wrong
// address. Then it sends the other way.
func (s *openFlow) exchange() {
	s.t.Helper()
	for _, way := range []struct {
		name     string
		from, to net.Conn
	}{{"to the client", s.server, s.client}, {"to the server", s.client, s.server}} {
		said, heard := "still there", make([]byte, len("still there"))
		if _, err := io.WriteString(way.from, said); err != nil {
			s.t.Fatalf("standing connection, %s: %v", way.name, err)
		}
		require.NoError(s.t, way.to.SetReadDeadline(time.Now().Add(joining)))
		if _, err := io.ReadFull(way.to, heard); err != nil || string(heard) != said {
			s.t.Fatalf("standing connection, %s: %q (%v), want %q", way.name, heard, err, said)
		}
	}
}

// awaitReady waits until the helper in a namespace has completed a pass.
func awaitReady(t *testing.T, ns netns.Namespace) {
	t.Helper()
	wait.Succeeds(t, joining, func() error { _, err := process.Ask(ns.Handle, "/readyz"); return err })
}
