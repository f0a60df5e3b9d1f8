package pathtest

import (
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

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	// joining is the timeout from the first record of two clusters until their paths are verified, and of other waits
	// whose duration is not tested, also in a slow guest and on a busy machine.
	joining     = 3 * time.Minute
	servicePort = 7000
)

// TestTwoClusters connects two clusters with equal CIDRs by their helpers, and disconnects them.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	for _, k := range combinations() {
		t.Run(fmt.Sprintf("%s/%s", k.Overlay, k.WireGuard), func(t *testing.T) {
			a, b, _ := twoClusters(t)
			connectBoth(k, a, b)
			servePods(t, a, b)
			expectAll(a, b)
			expectAll(b, a)
			for _, c := range []*testCluster{a, b} {
				c.expectCalm()
			}
			surviveHelpers(k, a, b)
			for _, c := range []*testCluster{a, b} {
				c.disconnect()
			}
		})
	}
}

// expectCalm checks that no helper reports a loss, a failure, or a drift, although nothing else changed the kernel, and
// that the logs are correct.
func (c *testCluster) expectCalm() {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error { // on a busy machine echoes are late
		s, err := c.status()
		if err == nil && s.Loss != 0 {
			err = fmt.Errorf("cluster %s: a share of %f of the echoes is lost", c.name, s.Loss)
		}
		return err
	})
	s, err := c.status()
	require.NoError(c.t, err)
	nodes, err := c.reports()
	require.NoError(c.t, err)
	if s.Drift.Times != 0 || len(s.Failed) != 0 {
		c.t.Errorf("cluster %s: status %+v: want no drift, no failure", c.name, s)
	}
	for name, n := range nodes {
		if n.Drift.Times != 0 {
			c.t.Errorf("node %s: %+v: want no drift", name, n)
		}
	}
	for _, ns := range append(slices.Clone(c.nodes[:]), c.gateways[0].Namespace) {
		if n := counter(c.t, ns, driftMetric); n != 0 {
			c.t.Errorf("cluster %s: %v objects count as drift, and none was changed", c.name, n)
		}
	}
	checkLogs(c.t, c)
}

// combinations returns the kinds that the kernel under test supports; the first alone for a short test, as in a slow
// guest.
func combinations() []path.Kinds {
	all := path.TestedKinds()
	if testing.Short() {
		return all[:1]
	}
	return all
}

// twoClusters returns clusters that are not connected yet, and the underlay that they share.
func twoClusters(t *testing.T) (a, b *testCluster, underlay netns.Namespace) {
	underlay = netns.New(t)
	ip(underlay, "link add br0 type bridge", "link set br0 up", fmt.Sprintf("addr add %s/16 dev br0", outside))
	return newCluster(t, underlay, 1, "10.11.0.0/16"), newCluster(t, underlay, 2, "10.12.0.0/16"), underlay
}

// connectBoth connects two clusters, and waits until their nodes have verified their paths.
func connectBoth(k path.Kinds, a, b *testCluster) {
	a.t.Helper()
	a.connect(k, b)
	b.connect(k, a)
	a.awaitProof(k)
	b.awaitProof(k)
}

// servePods is serve for the first pods of clusters.
func servePods(t *testing.T, clusters ...*testCluster) {
	for _, c := range clusters {
		for i := range nodesPerCluster {
			serve(t, c.pods[i])
		}
	}
}

// awaitProof waits until every node has received packets of full size back from a node of the peer, through every
// gateway, and every tunnel is answered.
func (c *testCluster) awaitProof(k path.Kinds) {
	c.t.Helper()
	for _, g := range c.gateways {
		wait.Succeeds(c.t, joining, func() error {
			s, err := c.statusOf(g)
			if err != nil {
				return fmt.Errorf("status of gateway %d of %s: %w", g.number, c.name, err)
			}
			if s.Implementation != k.WireGuard || s.Overlay != k.Overlay {
				return fmt.Errorf("cluster %s runs on %s and %s, want %s and %s", c.name, s.Implementation, s.Overlay, k.WireGuard, k.Overlay)
			}
			if len(s.Nodes) < nodesPerCluster {
				return fmt.Errorf("gateway %d of %s knows %d nodes", g.number, c.name, len(s.Nodes))
			}
			for _, n := range s.Nodes {
				if n.LastEcho.IsZero() || n.LastProof.IsZero() {
					return fmt.Errorf("no proof by gateway %d of %s of node %s: %+v", g.number, c.name, n.Name, n)
				}
			}
			for i, tunnel := range s.AllTunnels() {
				if tunnel.LastEcho.IsZero() {
					return fmt.Errorf("no echo by tunnel %d of gateway %d of %s: %+v", i+1, g.number, c.name, tunnel)
				}
			}
			return nil
		})
	}
}

// serve answers connections to a pod with their source address.
func serve(t *testing.T, pod netns.Namespace) {
	listener := acceptIn(t, pod, servicePort)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr().String())
			_ = conn.Close()
		}
	}()
}

// seenBy connects to a pod and returns the source address that it observed.
func seenBy(from netns.Namespace, pod netip.Addr) (source string, err error) {
	const answering = 20 * time.Second
	err = from.Do(func() error {
		conn, err := net.DialTimeout("tcp4", netip.AddrPortFrom(pod, servicePort).String(), answering)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(answering)); err != nil {
			return err
		}
		text, err := io.ReadAll(conn)
		source = string(text)
		return err
	})
	return source, err
}

// expectAll connects from all pods and nodes of a cluster to all pods of the other.
func expectAll(from, to *testCluster) {
	from.t.Helper()
	reports, err := from.reports()
	require.NoError(from.t, err)
	for i := range from.nodes {
		internal := reports[from.nodeName(i)].Internal.As4()
		external := peerExternal.Addr().As4()
		copy(external[2:], internal[2:])
		for j := range to.nodes {
			for _, source := range []struct {
				netns.Namespace
				want netip.Addr
			}{{from.pods[i], from.remappedPod(i)}, {from.nodes[i], netip.AddrFrom4(external)}} {
				// On a busy machine echoes are late, and a gateway then renews its tunnel: it sends ICMP errors for a
				// moment, and a packet in flight is lost.
				var got string
				wait.Succeeds(from.t, joining, func() (err error) {
					got, err = seenBy(source.Namespace, to.remappedPod(j))
					return err
				})
				if got != source.want.String() {
					from.t.Errorf("%s: a pod on %s sees %q, want %s", from.nodeName(i), to.nodeName(j), got, source.want)
				}
			}
			// The largest unfragmented packet: 28 are ICMP's and IP's headers. One of some seconds, as above.
			from.pods[i].Run("ping", "-q", "-c1", "-w20", "-Mdo", fmt.Sprintf("-s%d", pathMTU-28), to.remappedPod(j).String())
		}
	}
}

// surviveHelpers kills helpers. Their kernel state keeps working, except for a tunnel in the process. New helpers take
// over on the nodes, and open connections continue.
func surviveHelpers(k path.Kinds, a, b *testCluster) {
	flow := newOpenFlow(a, b)
	for _, c := range []*testCluster{a, b} {
		for _, p := range c.nodeHelpers {
			p.Kill()
		}
		if k.WireGuard == records.Kernel {
			c.gateways[0].helper.Kill()
		}
	}
	expectAll(a, b)
	for _, c := range []*testCluster{a, b} {
		c.startNodes()
		for _, n := range c.nodes {
			awaitReady(c.t, n)
		}
	}
	flow.exchange()
}

// disconnect deletes the records and waits until the nodes have no liqonet state.
func (c *testCluster) disconnect() {
	c.t.Helper()
	for _, name := range []string{records.PeeringName("peer"), records.GatewayID{Peering: "peer", Number: 1}.Name(), records.FabricName, records.IPAMName} {
		err := c.api.CoreV1().ConfigMaps(records.DefaultNamespace).Delete(c.t.Context(), name, metav1.DeleteOptions{})
		if err != nil && (name != records.IPAMName || !apierrors.IsNotFound(err)) {
			c.t.Fatal(err)
		}
	}
	wait.Succeeds(c.t, joining, func() error {
		reports, err := c.reports()
		if err != nil {
			return err
		}
		for name, n := range reports {
			if !n.Clean {
				return fmt.Errorf("node %s is not clean", name)
			}
		}
		return nil
	})
	for i, n := range c.nodes {
		left := n.Run("ip", "-o", "link") + n.Run("ip", "rule") + n.Run("ip", "nexthop") + n.Run("nft", "list", "tables")
		if strings.Contains(left, "lqn") || strings.Contains(left, "liqonet") || strings.Contains(left, "encap") {
			c.t.Errorf("node %s has left:\n%s", c.nodeName(i), left)
		}
	}
}
