package pathtest

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// Sizes for TestGarbage: the results for 10,000 objects and 1,000 connections, and objects of 1 MiB, are in
// docs/contributing/measurements.md.
var (
	garbageSize = flag.Int("garbage-size", 1000, "`BYTES` of each of these; of Leases 200,000 at most, as API servers accept 256 KiB")
	garbage     = flag.Int("garbage", 500, "`NUMBER` of Leases, and of ConfigMaps of each kind, that make no sense")
	strangers   = flag.Int("strangers", 100, "`NUMBER` of connections to the metrics of each helper")
)

// TestGarbage fills the namespace with unreadable objects that look like those of helpers, as the holder of a node's
// stolen token could (Leases), or of the right to write ConfigMaps, and holds connections to the metrics of helpers.
// Packets cross meanwhile, the helpers' memory stays within the limit of their containers, and they answer probes and
// apply changes of valid records. With -short, as in a slow guest, there are fewer objects.
func TestGarbage(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	traffic := startTraffic(t, a, b)
	helpers := []struct {
		name string
		ns   netns.Namespace
		*process.Process
	}{{"node", a.Nodes[0], a.NodeHelpers[0]}, {"gateway", a.Gateways[0].Namespace, a.Gateways[0].Helper}}
	measure := func(what string) {
		for _, h := range helpers {
			resident, err := load.Resident(h.PID)
			peak, errPeak := load.Peak(h.PID)
			taken, errTime := process.Time(h.PID)
			if err != nil || errPeak != nil || errTime != nil {
				t.Fatal(err, errPeak, errTime)
			}
			t.Logf("%s: %s helper has %d MiB, had %d MiB at most, took %.1f s of a core, logged %d kB", what, h.name, resident>>20, peak>>20,
				taken.Seconds(), len(h.Log())>>10)
			if peak > clusters.MemoryLimit {
				t.Errorf("%s: %s helper had %d MiB: its container has a limit of %d MiB", what, h.name, peak>>20, clusters.MemoryLimit>>20)
			}
		}
	}
	measure("before")
	begin := time.Now()
	n := *garbage
	if testing.Short() {
		n /= 10
	}
	a.writeGarbage(n)
	t.Logf("%d objects written in %v", 3*n, time.Since(begin).Round(time.Millisecond))
	a.awaitMTU(b, clusters.PathMTU-10)
	measure("garbage")
	for _, h := range helpers {
		holdConnections(t, h.ns, *strangers)
		awaitReady(t, h.ns)
	}
	measure("connections")
	a.awaitMTU(b, clusters.PathMTU-20)
	sent, lost := traffic.count("").sent, traffic.lost(t)
	t.Logf("%d of %d packets lost", lost, sent)
	if lost > sent/20 {
		t.Errorf("%d of %d packets lost: want less than 5 %%", lost, sent)
	}
}

// writeGarbage writes objects with unreadable records and the labels of valid ones.
func (c *testCluster) writeGarbage(n int) {
	c.t.Helper()
	node := records.Identity{Component: records.ComponentNode}.Labels()
	var texts []string
	for _, t := range [][2]string{{"", "x"}, {"version: 1\nname: a-1\n", "pods: ["}, {"version: 99\n", "# \n"}, {"version: 1\nname: stranger\n", "# \n"}} {
		texts = append(texts, t[0]+strings.Repeat(t[1], *garbageSize/len(t[1])))
	}
	group := new(errgroup.Group)
	group.SetLimit(4)
	for i := range n {
		text, holder := texts[i%len(texts)], c.NodeName(0)
		meta := func(name string, labels map[string]string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Name: name, Namespace: records.DefaultNamespace, Labels: labels}
		}
		maps := c.API.CoreV1().ConfigMaps(records.DefaultNamespace)
		group.Go(func() error {
			lease := &coordinationv1.Lease{ObjectMeta: meta(records.NodeLeaseName(20000+i), node), Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
			lease.Annotations = map[string]string{records.AnnotationNode: text[:min(len(text), 200_000)]}
			_, err := c.API.CoordinationV1().Leases(records.DefaultNamespace).Create(c.t.Context(), lease, metav1.CreateOptions{})
			return err
		})
		for _, name := range []string{records.PeeringName(fmt.Sprintf("garbage-%d", i)), fmt.Sprintf("garbage-%d", i)} {
			group.Go(func() error {
				id, _ := records.IdentityOf(name)
				cm := &corev1.ConfigMap{ObjectMeta: meta(name, id.Labels()), Data: map[string]string{records.DataKey: text}}
				_, err := maps.Create(c.t.Context(), cm, metav1.CreateOptions{})
				return err
			})
		}
	}
	require.NoError(c.t, group.Wait())
}

// awaitMTU changes the peering's record, and waits until the nodes and the gateway apply it.
func (c *testCluster) awaitMTU(peer *testCluster, mtu int) {
	c.t.Helper()
	p := c.Record(peer.Cluster)
	p.MTU = mtu
	begin := time.Now()
	c.Rewrite(p)
	for _, ns := range append(slices.Clone(c.Nodes[:]), c.Gateways[0].Namespace) {
		wait.Succeeds(c.t, joining, func() error {
			if routes := ns.Run("ip", "route", "show", "table", "all"); !strings.Contains(routes, fmt.Sprintf("mtu %d", mtu)) {
				return fmt.Errorf("no route has an MTU of %d:\n%s", mtu, routes)
			}
			return nil
		})
	}
	c.t.Logf("the record is followed after %v", time.Since(begin).Round(time.Millisecond))
}

// holdConnections opens connections to a helper's probes and holds them: some send nothing, some half a request, and
// some do not read the response.
func holdConnections(t *testing.T, ns netns.Namespace, n int) {
	t.Helper()
	questions := []string{"", "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}
	for i := range n {
		conn := dialIn(t, ns, "tcp4", netip.MustParseAddrPort(process.HealthAddress))
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, questions[i%len(questions)]) // the helper may have closed it
	}
}
