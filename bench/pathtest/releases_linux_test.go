package pathtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/bench/releases"
	"liqonet.io/liqonet/internal/eventually"
	"liqonet.io/liqonet/internal/records"
)

// On a machine that is kept busy, a gateway takes late echoes for a dead tunnel, and renews it. So helpers are replaced until no
// packet is lost, and packets count as lost by that only if none is lost for as long without it.
const (
	releaseFaults = 3  // replacements that lose packets
	releaseRounds = 12 // replacements at most
)

// TestReleases replaces the helpers of two connected clusters, one part after another, by those of the release before this
// one or after it, and back: each works with each, and pods reach each other all the while. Where a cluster has two gateways, no
// packet is lost when each is replaced. With -short, as in a guest, which has no compiler, there are no other releases.
func TestReleases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	for _, r := range []releases.Release{releases.Before, releases.After} {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			other := filepath.Join(t.TempDir(), "helpers")
			if err := r.Build(t.Context(), repository(t), releases.Program{Module: "bench", Package: "./pathtest", Test: true}, other); err != nil {
				t.Fatal(err)
			}
			t.Run("one gateway", func(t *testing.T) { t.Parallel(); exchange(t, r, other, 1) })
			if r == releases.After { // gateways of the release before have one tunnel
				t.Run("two gateways", func(t *testing.T) { t.Parallel(); exchange(t, r, other, 2) })
			}
		})
	}
}

// exchange replaces the helpers of clusters with so many gateways by those of a program of another release, and back.
func exchange(t *testing.T, r releases.Release, other string, gateways int) {
	t.Helper()
	k := combinations()[0]
	a, b, _ := twoClusters(t)
	for len(a.gateways) < gateways {
		a.addGateway()
		b.addGateway()
	}
	a.connect(k, b)
	b.connect(k, a)
	a.awaitPairs()
	b.awaitPairs()
	flow, traffic := openStanding(a, b), startTraffic(t, a, b)
	if r == releases.After {
		a.configureLater()
		b.configureLater()
	}
	for _, to := range []upgrade{{from: "", to: other}, {from: other, to: ""}} {
		a.replaceNodes(to, traffic)
		a.replaceGateways(to, b, traffic)
		b.replaceGateways(to, a, traffic)
		b.replaceNodes(to, traffic)
		flow.goOn()
		if later := r == releases.After && to.to == other; a.hasLater() != later || b.hasLater() != later {
			t.Errorf("reports have fields that this release does not know: %v, want %v", !later, later)
		}
	}
	for _, c := range []*testCluster{a, b} {
		c.part()
	}
}

// upgrade is from the helpers of a program to those of another one; "" is this one.
type upgrade struct{ from, to string }

// repository is the tree that this package is in: tests run in their package's folder.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// laterMTU is smaller than pathMTU: what follows a record has it.
const laterMTU = 1400

// configureLater changes the records as liqoctl of the release after this one does, before it replaces any helper, and waits
// until the helpers of this one follow them.
func (c *testCluster) configureLater() {
	c.t.Helper()
	const later = "later: {some: [1, x]}\n"
	c.edit(records.FabricName, func(text string) string {
		return later + replaced(c.t, text, "overlay:\n", "overlay:\n  "+later)
	})
	c.edit(records.PeeringName("peer"), func(text string) string {
		text = replaced(c.t, text, "peer:\n", "peer:\n  "+later)
		return later + replaced(c.t, text, fmt.Sprintf("mtu: %d\n", pathMTU), fmt.Sprintf("mtu: %d\n", laterMTU))
	})
	followers := c.nodes[:]
	for _, g := range c.gateways {
		followers = append(followers, g.Namespace)
	}
	for _, n := range followers {
		eventually.Succeeds(c.t, joining, func() error {
			if routes := n.Run("ip", "route", "show", "table", "all"); !strings.Contains(routes, fmt.Sprintf("mtu %d", laterMTU)) {
				return fmt.Errorf("a node or gateway of cluster %s does not follow its record, which has an MTU of %d:\n%s", c.name, laterMTU, routes)
			}
			return nil
		})
	}
}

func replaced(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("want %q once in\n%s", old, text)
	}
	return strings.Replace(text, old, new, 1)
}

// hasLater reports whether a gateway's report and one of its cluster's nodes have fields that this release does not know.
func (c *testCluster) hasLater() bool {
	c.t.Helper()
	cm, err := c.kube.CoreV1().ConfigMaps(records.DefaultNamespace).Get(c.t.Context(), records.GatewayID{Peering: "peer", Number: 1}.Name(), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	leases, err := c.kube.CoordinationV1().Leases(records.DefaultNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	node := false
	for _, l := range leases.Items {
		node = node || strings.Contains(l.Annotations[records.AnnotationNode], `"later":`)
	}
	return node && strings.Contains(cm.Data[records.DataKey], `"later":`)
}

// replaceNodes replaces the node helpers. No packet is lost.
func (c *testCluster) replaceNodes(u upgrade, traffic *traffic) {
	c.t.Helper()
	c.withoutLoss("node helpers", u, traffic, func(program string) {
		for i, n := range c.nodes {
			c.nodeHelpers[i].kill()
			c.nodeHelpers[i] = start(c.t, n, "node "+c.nodeName(i), job{Socket: c.socket, Node: c.nodeName(i), program: program})
			awaitReady(c.t, n)
		}
		c.awaitFresh(time.Now())
	})
}

// replaceGateways replaces the gateways' helpers, one after the other. With each goes the tunnel of a process: if there are
// others, they carry its packets, and none is lost.
func (c *testCluster) replaceGateways(u upgrade, peer *testCluster, traffic *traffic) {
	c.t.Helper()
	replace := func(program string) {
		for _, g := range c.gateways {
			if len(c.gateways) > 1 {
				g.helper.signal(syscall.SIGTERM)
				g.helper.wait()
			} else {
				g.helper.kill()
			}
			c.startBy(g, program)
			since := time.Now()
			c.awaitFresh(since)
			peer.awaitFresh(since)
		}
	}
	if len(c.gateways) == 1 {
		replace(u.to)
		return
	}
	c.withoutLoss("gateways", u, traffic, replace)
}

// withoutLoss replaces helpers until no packet is lost by it. After one that loses packets it goes back first.
func (c *testCluster) withoutLoss(what string, u upgrade, traffic *traffic, replace func(program string)) {
	c.t.Helper()
	faults := 0
	for range releaseRounds {
		before, begin := traffic.lost(c.t), time.Now()
		replace(u.to)
		after := traffic.lost(c.t)
		if after == before {
			return
		}
		<-time.After(time.Since(begin))
		undisturbed := traffic.lost(c.t) - after
		c.t.Logf("cluster %s: %d packets lost while %s were replaced, %d afterwards", c.name, after-before, what, undisturbed)
		if undisturbed == 0 {
			faults++
		}
		if faults == releaseFaults {
			c.t.Fatalf("cluster %s: packets are lost whenever %s are replaced", c.name, what)
		}
		replace(u.from)
	}
	replace(u.to)
}

// awaitFresh waits until every node has verified its path by every gateway after a time, and serves the peering as its record says.
func (c *testCluster) awaitFresh(since time.Time) {
	c.t.Helper()
	for _, g := range c.gateways {
		eventually.Succeeds(c.t, joining, func() error {
			s, err := c.statusOf(g)
			if err != nil {
				return fmt.Errorf("status of gateway %d of cluster %s: %w", g.number, c.name, err)
			}
			fresh := 0
			for _, n := range s.Nodes {
				if n.Refused != "" {
					return fmt.Errorf("node %s refuses the record: %s", n.Name, n.Refused)
				}
				if n.LastProof.After(since) && !n.Unused {
					fresh++
				}
			}
			stale := func(t records.TunnelStatus) bool { return !t.LastEcho.After(since) }
			if fresh == nodesPerCluster && !slices.ContainsFunc(s.AllTunnels(), stale) {
				return nil
			}
			// By damage to its report, it is written at once.
			c.edit(g.id().StatusName(), func(string) string { return "gone" })
			return fmt.Errorf("status of gateway %d of cluster %s is not of after %s: %+v", g.number, c.name, since, s)
		})
	}
}

// edit changes the text of a record.
func (c *testCluster) edit(name string, change func(string) string) {
	c.t.Helper()
	maps := c.kube.CoreV1().ConfigMaps(records.DefaultNamespace)
	cm, err := maps.Get(c.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		cm.Data[records.DataKey] = change(cm.Data[records.DataKey])
		_, err = maps.Update(c.t.Context(), cm, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
