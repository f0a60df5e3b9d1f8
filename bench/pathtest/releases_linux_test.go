package pathtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
// one or after it, and back: each works with each, and pods reach each other all the while. With -short, as in a guest, which
// has no compiler, there are no other releases.
func TestReleases(t *testing.T) {
	t.Parallel()
	for _, r := range otherReleases() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			k := combinations()[0]
			a, b, _ := twoClusters(t)
			a.connect(k, b)
			b.connect(k, a)
			other := r.build(t)
			for _, c := range []*testCluster{a, b} {
				c.awaitProof(k)
			}
			flow, traffic := openStanding(a, b), startTraffic(t, a, b)
			if r.extends {
				a.configureLater()
				b.configureLater()
			}
			for _, program := range []string{other, ""} {
				a.replaceNodes(program, traffic)
				a.replaceGateway(program, b)
				b.replaceGateway(program, a)
				b.replaceNodes(program, traffic)
				flow.goOn()
				if extended := r.extends && program != ""; a.hasLater() != extended || b.hasLater() != extended {
					t.Errorf("reports have fields that this release does not know: %v, want %v", !extended, extended)
				}
			}
			for _, c := range []*testCluster{a, b} {
				c.part()
			}
		})
	}
}

// release is one that this one works with.
type release struct {
	name    string
	build   func(*testing.T) string // its helpers
	extends bool                    // it writes fields that this one does not know
}

func otherReleases() []release {
	if testing.Short() {
		return nil
	}
	return []release{{"before", buildBefore, false}, {"after", buildAfter, true}}
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
	for _, n := range append(c.nodes[:], c.gateways[0].Namespace) {
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
		node = node || strings.Contains(l.Annotations[records.AnnotationNode], "later:")
	}
	return node && strings.Contains(cm.Data[records.DataKey], "later:")
}

// replaceNodes replaces the node helpers by those of a program, "" for this one's. No packet is lost.
func (c *testCluster) replaceNodes(program string, traffic *traffic) {
	c.t.Helper()
	faults := 0
	for range releaseRounds {
		before, begin := traffic.lost(c.t), time.Now()
		for i, n := range c.nodes {
			c.nodeHelpers[i].kill()
			c.nodeHelpers[i] = start(c.t, n, "node "+c.nodeName(i), job{Socket: c.socket, Node: c.nodeName(i), program: program})
			awaitReady(c.t, n)
		}
		c.awaitFresh(time.Now())
		after := traffic.lost(c.t)
		if after == before {
			return
		}
		<-time.After(time.Since(begin))
		undisturbed := traffic.lost(c.t) - after
		c.t.Logf("cluster %s: %d packets lost while node helpers were replaced, %d afterwards", c.name, after-before, undisturbed)
		if undisturbed > 0 {
			continue
		}
		if faults++; faults == releaseFaults {
			c.t.Fatalf("cluster %s: packets are lost whenever node helpers are replaced", c.name)
		}
	}
}

// replaceGateway replaces the gateway's helper by that of a program, "" for this one's. With it goes the tunnel of a process.
func (c *testCluster) replaceGateway(program string, peer *testCluster) {
	c.t.Helper()
	c.gateways[0].helper.kill()
	c.startBy(c.gateways[0], program)
	since := time.Now()
	c.awaitFresh(since)
	peer.awaitFresh(since)
}

// awaitFresh waits until every node has verified its path after a time, and serves the peering as its record says.
func (c *testCluster) awaitFresh(since time.Time) {
	c.t.Helper()
	eventually.Succeeds(c.t, joining, func() error {
		s, err := c.status()
		if err != nil {
			return fmt.Errorf("status of cluster %s: %w", c.name, err)
		}
		fresh := 0
		for _, n := range s.Nodes {
			if n.Refused != "" {
				return fmt.Errorf("node %s refuses the record: %s", n.Name, n.Refused)
			}
			if n.LastProof.After(since) {
				fresh++
			}
		}
		if fresh == nodesPerCluster && s.LastEcho.After(since) {
			return nil
		}
		c.askStatus()
		return fmt.Errorf("status of cluster %s is not of after %s: %+v", c.name, since, s)
	})
}

// askStatus has the gateway report at once, by damage to its report.
func (c *testCluster) askStatus() {
	c.edit(records.GatewayID{Peering: "peer", Number: 1}.StatusName(), func(string) string { return "gone" })
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
