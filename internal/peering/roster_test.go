package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

var (
	nodeA2 = fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12"}
	nodeA3 = fakecluster.Node{Name: "a3", PodCIDR: "10.244.3.0/24", Address: "172.31.1.13"}
)

// slowClusters returns two clusters whose helpers act once a second, which is sufficient for tests that wait for a
// minute.
func slowClusters() (a, b *fakecluster.Cluster) {
	a, b = fakecluster.Pair()
	a.Interval, b.Interval = time.Second, time.Second
	return a, b
}

// away returns the node as not Ready.
func away(n fakecluster.Node) fakecluster.Node {
	n.NotReady = true
	return n
}

// named lists the unverified nodes of a result.
func named(nodes []UnverifiedNode) string {
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = n.Name + ": " + n.Reason
	}
	return strings.Join(texts, "\n")
}

// TestConnectFollowsNodes: nodes are added and removed, and become Ready or not Ready, during a connect.
func TestConnectFollowsNodes(t *testing.T) {
	for _, tt := range []struct {
		name     string
		before   func(t *testing.T, a *fakecluster.Cluster)
		during   func(t *testing.T, a *fakecluster.Cluster) // while connect waits for a2
		strict   bool
		verified string // nodes of a in the result
		named    string // unverified nodes in the result
		within   time.Duration
		warned   string
	}{
		{name: "a node without a helper leaves", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a2"] = true },
			during: func(t *testing.T, a *fakecluster.Cluster) { a.Leave(t, "a2") }, strict: true, verified: "a1", within: 12 * time.Second},
		{name: "a node without a helper is not Ready any more", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a2"] = true },
			during: func(t *testing.T, a *fakecluster.Cluster) { a.UpdateNode(t, away(nodeA2)) }, strict: true, verified: "a1", within: 12 * time.Second,
			warned: `cluster "a": skipping node a2: not Ready`},
		{name: "a node is not Ready all the while", before: func(t *testing.T, a *fakecluster.Cluster) {
			a.UpdateNode(t, away(nodeA2))
			a.NotReporting["a2"] = true
		},
			strict: true, verified: "a1", within: 10 * time.Second, warned: `cluster "a": skipping node a2: not Ready`},
		{name: "a helper comes late", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a2"] = true },
			during: func(_ *testing.T, a *fakecluster.Cluster) { a.Set(func() { a.NotReporting["a2"] = false }) }, strict: true, verified: "a1 a2", within: 12 * time.Second},
		{name: "a node becomes Ready late", before: func(t *testing.T, a *fakecluster.Cluster) {
			a.Join(t, away(nodeA3))
			a.NotReporting["a2"], a.NotReporting["a3"] = true, true
		}, during: func(t *testing.T, a *fakecluster.Cluster) {
			a.UpdateNode(t, nodeA3)
			a.Set(func() { a.NotReporting["a2"], a.NotReporting["a3"] = false, false })
		}, strict: true, verified: "a1 a2 a3", within: 12 * time.Second},
		{name: "a node joins", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a2"] = true },
			during: func(t *testing.T, a *fakecluster.Cluster) {
				a.Set(func() { a.NotReporting["a2"] = false })
				a.Join(t, nodeA3)
			}, strict: true, verified: "a1 a2 a3", within: 12 * time.Second},
		{name: "a node joins and has no helper", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a3"], a.NotReporting["a2"] = true, true },
			during: func(t *testing.T, a *fakecluster.Cluster) {
				a.Set(func() { a.NotReporting["a2"] = false })
				a.Join(t, nodeA3)
			}, verified: "a1 a2", named: "a3: its helper has not reported", within: time.Minute},
		{name: "a helper never reports", before: func(_ *testing.T, a *fakecluster.Cluster) { a.NotReporting["a2"] = true },
			verified: "a1", named: "a2: its helper has not reported", within: time.Minute},
		{name: "a helper cannot start", before: func(_ *testing.T, a *fakecluster.Cluster) {
			a.NotReporting["a2"], a.NotReportingPodFailure = true, "CrashLoopBackOff"
		},
			verified: "a1", named: "a2: pod node-a2 on node a2 cannot start: CrashLoopBackOff: no such image", within: 15 * time.Second},
	} {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := slowClusters()
			tt.before(t, a)
			fakecluster.Run(t, a, b)
			o, r := connectOptions(a, b), &fakecluster.Recorder{}
			o.AllNodes = tt.strict
			if tt.during != nil {
				time.AfterFunc(8*time.Second, func() { tt.during(t, a) })
			}
			got, err := Connect(t.Context(), o, r)
			if err != nil {
				t.Fatal(err, r.Lines())
			}
			took := time.Duration(got.Took)
			var verified []string
			for _, n := range got.Local.Proof.Nodes {
				verified = append(verified, n.Name)
			}
			if strings.Join(verified, " ") != tt.verified || named(got.Local.Unverified) != tt.named || len(got.Remote.Unverified) > 0 || took > tt.within {
				t.Errorf("verified %v, not %q, %q, after %s", verified, named(got.Local.Unverified), named(got.Remote.Unverified), took)
			}
			warnings := slices.DeleteFunc(r.Lines(), func(line string) bool { return !strings.Contains(line, "skipping node") })
			if tt.warned == "" && len(warnings) > 0 || tt.warned != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], tt.warned)) {
				t.Errorf("warnings %q, want %q", warnings, tt.warned)
			}
			a.Peering(t)
			b.Peering(t)
		})
	}
}

// TestConnectNeedsSomeNodes: connect fails, and rolls back, if no node of a cluster is verified, or if one is not and
// all are required.
func TestConnectNeedsSomeNodes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mute   []string
		fails  string
		strict bool
		want   string
	}{
		{"no helper reports", []string{"a1", "a2"}, "", false, "not done within 1m0s (--timeout)"},
		{"no helper can start", []string{"a1", "a2"}, "CrashLoopBackOff", false, "pod node-a1 on node a1 cannot start"},
		{"one does not report, and all have to", []string{"a2"}, "", true, "not yet: node a2"},
		{"one cannot start, and all have to", []string{"a2"}, "CrashLoopBackOff", true, "pod node-a2 on node a2 cannot start"},
	} {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := slowClusters()
			a.NotReportingPodFailure = tt.fails
			for _, name := range tt.mute {
				a.NotReporting[name] = true
			}
			fakecluster.Run(t, a, b)
			o := connectOptions(a, b)
			o.AllNodes = tt.strict
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			assert.ErrorContains(t, "connect", err, tt.want)
			fakecluster.ExpectNothingLeft(t, a, b)
		})
	}
}

// TestConnectAgainNamesNodes: a second connect and an update, after a node has failed, list the node, as does status.
func TestConnectAgainNamesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := slowClusters()
		fakecluster.Run(t, a, b)
		o := connectOptions(a, b)
		fakecluster.Must(t, Connect, o)
		a.Set(func() { a.NotReporting["a2"] = true })
		time.Sleep(2 * a.Interval) //nolint:forbidigo // synctest's clock
		const want = "a2: no echo between gateway and node"
		got, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || got.Changed || named(got.Local.Unverified) != want {
			t.Errorf("again: changed %v, unverified %q, %v", got.Changed, named(got.Local.Unverified), err)
		}
		o.MTU, o.Image, o.Update = new(1300), "liqonet:2", true
		got, err = Connect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || !got.Changed || named(got.Local.Unverified) != want || b.Peering(t).MTU != 1300 {
			t.Errorf("update: changed %v, unverified %q, %v", got.Changed, named(got.Local.Unverified), err)
		}
		o.AllNodes = true
		if _, err = Connect(t.Context(), o, &fakecluster.Recorder{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "node a2") {
			t.Errorf("with all nodes: %v", err)
		}
		peerings, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || len(peerings) != 1 || peerings[0].State != "degraded" || !strings.Contains(peerings[0].Reason, "node a2") {
			t.Errorf("status %+v, %v", peerings, err)
		}
	})
}

// TestInitNamesNodes: an installation is complete without a node whose helper does not report; the result lists it.
func TestInitNamesNodes(t *testing.T) {
	for fails, want := range map[string]string{
		"": "a2: its helper has not reported", "CrashLoopBackOff": "a2: pod node-a2 on node a2 cannot start: CrashLoopBackOff: no such image",
	} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := slowClusters()
			a.NotReporting["a2"], a.NotReportingPodFailure = true, fails
			fakecluster.Run(t, a)
			o := InitOptions{Side: Side{Cluster: a.Cluster}, Installation: Installation{Image: "liqonet:1"}, Timeout: time.Minute}
			got, err := Init(t.Context(), o, &fakecluster.Recorder{})
			if err != nil || named(got.Unverified) != want {
				t.Errorf("%q: unverified %q, %v", fails, named(got.Unverified), err)
			}
			o.AllNodes = true
			if _, err := Init(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(err.Error(), "a2") {
				t.Errorf("%q, all nodes: %v", fails, err)
			}
		})
	}
}

// TestTimeGrowsWithTheCluster: the default time limit grows with the number of nodes of either cluster.
func TestTimeGrowsWithTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := slowClusters()
		for i := range 100 {
			b.AddNode(t, fakecluster.Node{Name: fmt.Sprintf("x%d", i), PodCIDR: fmt.Sprintf("10.244.%d.0/24", 100+i), Address: fmt.Sprintf("172.31.2.%d", 100+i)})
		}
		a.IgnoresRecords, a.Interval, b.Interval = true, time.Minute, time.Minute
		fakecluster.Run(t, a, b)
		o := connectOptions(a, b)
		o.Timeout = 0
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		assert.ErrorContains(t, "connect", err, "not done within 2m10s (--timeout)")
		_, err = Init(t.Context(), InitOptions{Side: Side{Cluster: a.Cluster}, Installation: o.Installation}, &fakecluster.Recorder{})
		assert.ErrorContains(t, "init", err, "not done within 2m0s (--timeout)")
	})
}

// TestConnectWithoutWatchOfNodes: a user who may not watch nodes connects those that existed at the start.
func TestConnectWithoutWatchOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		a.Fake.PrependWatchReactor("nodes", func(action clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
		if got, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{}); err != nil || len(got.Local.Proof.Nodes) != 2 {
			t.Errorf("%+v, %v", got.Local.Proof, err)
		}
	})
}

// TestTimeOfRemovalGrowsWithTheCluster: the limit includes the wait for each node, and for the termination of each pod.
func TestTimeOfRemovalGrowsWithTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		for i := range 100 {
			b.AddNode(t, fakecluster.Node{Name: fmt.Sprintf("x%d", i), PodCIDR: fmt.Sprintf("10.244.%d.0/24", 100+i), Address: fmt.Sprintf("172.31.2.%d", 100+i)})
		}
		a.Set(func() { a.IgnoresRecords = true })
		b.Set(func() { b.IgnoresRecords = true })
		const late = "not done within 2m10s (--timeout)"
		_, err := removal.Disconnect(t.Context(), removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster}, &fakecluster.Recorder{})
		assert.ErrorContains(t, "disconnect", err, late)
		_, err = removal.Reset(t.Context(), removal.ResetOptions{Cluster: b.Cluster, Image: "liqonet:1", Force: true}, &fakecluster.Recorder{})
		assert.ErrorContains(t, "reset", err, late)
	})
}
