package removal_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

func TestDisconnectRemovesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}
		got := fakecluster.Must(t, removal.Disconnect, o)
		if !got.Changed || !slices.Equal(got.Local.Peerings, []string{"b"}) || !slices.Equal(got.Remote.Peerings, []string{"a"}) {
			t.Errorf("result %+v", got)
		}
		uses := ""
		for _, r := range got.Local.Released {
			uses += r.Range.String() + " " + r.Use + "\n"
		}
		if !strings.Contains(uses, `10.71.0.0/16 peering "b" pods`) {
			t.Errorf("released:\n%s", uses)
		}
		for _, w := range []*fakecluster.Cluster{a, b} {
			if left := w.Traces(t); len(left) > 0 {
				t.Errorf("cluster %s: left %v", w.Context, left)
			}
			if f, err := inventory.Fabric(t.Context(), w.Cluster); f == nil || err != nil {
				t.Errorf("cluster %s: the installation is gone, %v", w.Context, err)
			}
		}
		again, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || again.Changed {
			t.Errorf("again: changed %v, %v", again.Changed, err)
		}
	})
}

// TestDisconnectWaitsForGuards: nodes guard the ranges of a peering while they are reserved. When disconnect returns,
// no kernel has state of the peering.
func TestDisconnectWaitsForGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		a.Set(func() { a.RemovalDelay = 3 * time.Second })
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}
		fakecluster.Must(t, removal.Disconnect, o)
		for _, n := range a.StoredReports(t) {
			if len(n.Guarded) > 0 || len(n.Peerings) > 0 {
				t.Errorf("node %s has %v, and guards %v", n.Name, n.Peerings, n.Guarded)
			}
		}
	})
}

// TestRangesAreReleasedAfterRoutesAreRemoved: the ranges of a peering must not be reserved again while a node
// has routes for them.
func TestRangesAreReleasedAfterRoutesAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		a.Set(func() { a.RemovalDelay = 3 * time.Second })
		released := 0
		a.Fake.PrependReactor("patch", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.PatchAction).GetName() != records.IPAMName {
				return false, nil, nil
			}
			released++
			for _, n := range a.StoredReports(t) {
				if slices.Contains(n.Peerings, "b") {
					t.Errorf("released while node %s has routes", n.Name)
				}
			}
			return false, nil, nil
		})
		start := time.Now()
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}
		fakecluster.Must(t, removal.Disconnect, o)
		if took := time.Since(start); released != 1 || took < 2*time.Second {
			t.Errorf("%d writes of the registry, after %s", released, took)
		}
	})
}

func TestDisconnectDoesNotWaitForNodesThatAreNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		// The node's report did not change.
		a.Set(func() { a.Nodes = a.Nodes[:1] })
		away := fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12", NotReady: true}.Object()
		_, err := a.Fake.CoreV1().Nodes().Update(t.Context(), away, metav1.UpdateOptions{})
		require.NoError(t, err)
		r := &fakecluster.Recorder{}
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: 10 * time.Second}
		_, err = removal.Disconnect(t.Context(), o, r)
		require.NoError(t, err)
		if !slices.ContainsFunc(r.Lines(), func(s string) bool { return strings.Contains(s, "warn") && strings.Contains(s, "a2") }) {
			t.Errorf("no warning of node a2: %v", r.Lines())
		}
	})
}

func TestDisconnectListsUnconfirmedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		a.Set(func() { a.IgnoresRecords = true })
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: 5 * time.Second}
		_, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not yet: node a1, a2") {
			t.Fatalf("error %v", err)
		}
		// The peering is removed from the other cluster all the same, and another run can complete the removal.
		a.Set(func() { a.IgnoresRecords = false })
		fakecluster.Must(t, removal.Disconnect, o)
		fakecluster.ExpectNoTraces(t, a, b)
	})
}

func TestDisconnectOneSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		o := removal.DisconnectOptions{Local: a.Cluster, Peer: "b", OneSide: true, Timeout: time.Minute}
		got, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || got.Remote != nil {
			t.Errorf("%+v, %v", got, err)
		}
		fakecluster.ExpectNoTraces(t, a)
		if left := b.Traces(t); !slices.Equal(left, []string{"a"}) {
			t.Errorf("the other side has %v", left)
		}
	})
}

func TestDisconnectRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		c := fakecluster.New("c", fakecluster.Node{Name: "c1", PodCIDR: "10.1.0.0/24", Address: "172.31.3.11"})
		tests := []struct {
			name, want string
			o          removal.DisconnectOptions
		}{
			{"half of it without a word", "the remote cluster is required", removal.DisconnectOptions{Peer: "b"}},
			{"nothing in particular", "a peer is required", removal.DisconnectOptions{OneSide: true}},
			{"a peering with another cluster", "is not with cluster", removal.DisconnectOptions{Peer: "b", Remote: c.Cluster}},
			{"a name that selects other objects", "name", removal.DisconnectOptions{Peer: "b,x=y", OneSide: true}},
		}
		for _, tt := range tests {
			tt.o.Local = a.Cluster
			_, err := removal.Disconnect(t.Context(), tt.o, &fakecluster.Recorder{})
			assert.ErrorContains(t, tt.name, err, tt.want)
		}
		if left := b.Traces(t); len(left) != 1 {
			t.Errorf("b has %v", left)
		}
		_, err := removal.Disconnect(t.Context(), removal.DisconnectOptions{Peer: "X_Y", OneSide: true}, &fakecluster.Recorder{})
		if !errors.As(err, new(*progress.InputError)) {
			t.Errorf("a name that nothing can have: error %v", err)
		}
	})
}

func TestInitAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		o := peering.InitOptions{Side: peering.Side{Cluster: a.Cluster, Name: "milan", Reserved: []netip.Prefix{netip.MustParsePrefix("10.5.1.0/24")}}, Installation: peering.Installation{Image: "liqonet:1"}}
		got, err := peering.Init(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || !got.Changed || got.Cluster.Name != "milan" || got.Cluster.Overlay != records.Geneve || got.Cluster.Nodes != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		r, err := inventory.Reservations(t.Context(), a.Cluster)
		if err != nil || len(r.Held(ipam.Cluster, ipam.Reserved)) != 1 {
			t.Errorf("reserved %v, %v", r.List(), err)
		}
		o.Side.Name = ""
		if got, err = peering.Init(t.Context(), o, &fakecluster.Recorder{}); err != nil || got.Changed || got.Cluster.Name != "milan" {
			t.Errorf("again: %+v, %v", got, err)
		}
		o.Side.Name = "rome"
		if _, err = peering.Init(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*plan.DifferenceError)) || !strings.Contains(err.Error(), "milan -> rome") {
			t.Errorf("other name: %v", err)
		}
		o.Side.Name, o.Side.Reserved = "", []netip.Prefix{netip.MustParsePrefix("10.6.0.0/16")}
		if _, err = peering.Init(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*plan.DifferenceError)) {
			t.Errorf("other reservation: %v", err)
		}
		reset, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: o.Side.Cluster, Image: "liqonet:1", Timeout: time.Minute}, &fakecluster.Recorder{})
		if err != nil || !reset.Changed {
			t.Fatalf("reset: %+v, %v", reset, err)
		}
		fakecluster.ExpectNothingLeft(t, a)
		if reset, err = removal.Reset(t.Context(), removal.ResetOptions{Cluster: o.Side.Cluster, Image: "liqonet:1", Timeout: time.Minute}, &fakecluster.Recorder{}); err != nil || reset.Changed {
			t.Errorf("reset again: %+v, %v", reset, err)
		}
	})
}

func TestResetWaitsForEmptyKernels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		a.Fake.PrependReactor("delete", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
			for _, n := range a.StoredReports(t) {
				if !n.Clean {
					t.Errorf("the helper of node %s is removed before its kernel is empty", n.Name)
				}
			}
			return false, nil, nil
		})
		base, err := templates.Base(templates.BaseValues{Namespace: a.Namespace, Image: "liqonet:1", Policies: true})
		require.NoError(t, err)
		for _, o := range base {
			if _, policy := o.(*admissionv1.ValidatingAdmissionPolicy); policy {
				a.Add(t, o)
			}
		}
		policies := 0
		a.Fake.PrependReactor("delete", "validatingadmissionpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
			if policies++; len(a.StoredReports(t)) > 0 {
				t.Error("a policy is removed before the Leases of nodes, which the API server then keeps for the next one")
			}
			return false, nil, nil
		})
		o := removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1", Timeout: time.Minute}
		if _, err := removal.Reset(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(hint.Of(err), "--force") {
			t.Fatalf("reset with a peering: %v", err)
		}
		o.Force = true
		fakecluster.Must(t, removal.Reset, o)
		if policies == 0 {
			t.Error("no policy was removed")
		}
		fakecluster.ExpectNothingLeft(t, a)
	})
}

// TestDamagedReservations: connect, disconnect and reset reject reservations that do not decode, and suggest the
// command that saves a copy. Reset with force deletes them.
func TestDamagedReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		damage := []byte(`{"data": {"record": "version: 1\nreservations: [x]\n"}}`)
		_, err := a.Fake.CoreV1().ConfigMaps(a.Namespace).Patch(t.Context(), records.IPAMName, types.MergePatchType, damage, metav1.PatchOptions{})
		require.NoError(t, err)
		reset := removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1", Timeout: time.Minute}
		_, connects := peering.Connect(t.Context(), connected.Options(a, b), &fakecluster.Recorder{})
		_, disconnects := removal.Disconnect(t.Context(), removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}, &fakecluster.Recorder{})
		_, resets := removal.Reset(t.Context(), reset, &fakecluster.Recorder{})
		for what, err := range map[string]error{"connect": connects, "disconnect": disconnects, "reset": resets} {
			advice := hint.Of(err)
			if err == nil || !strings.Contains(advice, "kubectl --context a -n liqonet get configmap ipam -o yaml > ipam.yaml") || !strings.Contains(advice, "reset --force") {
				t.Errorf("%s: error %v, hint %q", what, err, advice)
			}
		}
		reset.Force = true
		r := &fakecluster.Recorder{}
		_, err = removal.Reset(t.Context(), reset, r)
		require.NoError(t, err)
		fakecluster.ExpectNothingLeft(t, a)
		if output := strings.Join(r.Lines(), "\n"); !strings.Contains(output, "read ConfigMap liqonet/ipam") {
			t.Errorf("no warning: %s", output)
		}
	})
}

func TestResetOfNodesWithoutHelper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		a.Set(func() { a.IgnoresRecords = true })
		require.NoError(t, a.Fake.AppsV1().DaemonSets(a.Namespace).Delete(t.Context(), records.NodeName, metav1.DeleteOptions{}))
		o := removal.DisconnectOptions{Local: a.Cluster, Peer: "b", OneSide: true, Timeout: time.Minute}
		if _, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(hint.Of(err), "network init") {
			t.Errorf("disconnect: %v", err)
		}
		r := &fakecluster.Recorder{}
		_, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: o.Local, Image: "liqonet:1", Force: true, Timeout: time.Minute}, r)
		require.NoError(t, err)
		if !slices.ContainsFunc(r.Lines(), func(s string) bool { return strings.Contains(s, "without a helper to remove it") }) {
			t.Errorf("no warning: %v", r.Lines())
		}
	})
}

func TestInterruptedRemovalCanBeRunAgain(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		over := false
		bubble.Run(t, fmt.Sprintf("delete%02d", n), func(t *testing.T) {
			a, b := connected.New(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			deletions := 0
			a.Fake.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetResource().Resource == "pods" {
					return false, nil, nil
				}
				if deletions++; deletions >= n && ctx.Err() == nil && !over {
					cancel()
					return true, nil, context.Canceled
				}
				return false, nil, nil
			})
			sides := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}
			reset := removal.ResetOptions{Cluster: sides.Local, Image: "liqonet:1", Timeout: time.Minute}
			_, err := removal.Disconnect(ctx, sides, &fakecluster.Recorder{})
			if err == nil {
				_, err = removal.Reset(ctx, reset, &fakecluster.Recorder{})
			}
			over = err == nil
			fakecluster.Must(t, removal.Disconnect, sides)
			fakecluster.Must(t, removal.Reset, reset)
			fakecluster.ExpectNothingLeft(t, a)
			fakecluster.ExpectNoTraces(t, b)
		})
		if over || t.Failed() {
			if n < 15 {
				t.Errorf("only %d deletions seen", n)
			}
			return
		}
	}
}

// TestDisconnectFindsRemainsByContext: a connect was killed during its rollback: one cluster has no remains, and the
// remains in the other one do not identify the peer.
func TestDisconnectFindsRemainsByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		fakecluster.Must(t, removal.Reset, removal.ResetOptions{Cluster: b.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute})
		require.NoError(t, a.Fake.CoreV1().ConfigMaps(a.Namespace).Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}))
		for name, o := range map[string]removal.DisconnectOptions{
			"a": {Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute},
			"b": {Local: b.Cluster, Remote: a.Cluster, Timeout: time.Minute},
		} {
			if _, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
				t.Errorf("from %s: %v", name, err)
			}
		}
		fakecluster.ExpectNoTraces(t, a)
	})
}
