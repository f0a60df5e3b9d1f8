package peering

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestDamagedRecordsAreNotOverwritten(t *testing.T) {
	for name, text := range map[string]string{"peering-b": "version: 3\n", "fabric": "version: 1\nclusterID: [nonsense]\n", "ipam": "version: 9\n"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := fakecluster.Pair()
			_, err := a.Fake.CoreV1().ConfigMaps(a.Namespace).Create(t.Context(), recordMap(name, text), metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{})
			if err == nil || !strings.Contains(err.Error(), "ConfigMap liqonet/"+name) {
				t.Errorf("error %v", err)
			}
			object, err := a.Fake.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || object.Data[records.DataKey] != text {
				t.Errorf("%s is %v, %v", name, object, err)
			}
		})
	}
}

func recordMap(name, text string) *corev1.ConfigMap {
	component := records.ComponentPeering
	if name == records.FabricName {
		component = records.ComponentFabric
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{records.LabelComponent: component}},
		Data:       map[string]string{records.DataKey: text},
	}
}

func TestThreeClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		c := fakecluster.Third()
		fakecluster.Run(t, c)
		got := fakecluster.Must(t, Connect, connectOptions(a, c))
		peerings, err := inventory.Peerings(t.Context(), a.Cluster)
		if err != nil || len(peerings) != 2 {
			t.Fatal(peerings, err)
		}
		if x, y := peerings[0], peerings[1]; x.Number != 1 || y.Number != 2 ||
			x.Peer.PodCIDRs[0].Seen.Overlaps(y.Peer.PodCIDRs[0].Seen) || x.Peer.ExternalCIDR().Seen.Overlaps(y.Peer.ExternalCIDR().Seen) {
			t.Errorf("the two peerings share something: %+v\n%+v", x, y)
		}
		if got.Local.Peering != "c" {
			t.Errorf("result %+v", got.Local)
		}
		// Another cluster with the name b, and b with another name.
		o := connectOptions(a, c)
		o.Remote.Name = "b"
		_, err = Connect(t.Context(), o, &fakecluster.Recorder{})
		assert.ErrorContains(t, "connect", err, `already has the name "c"`)
		d := fakecluster.New("b", fakecluster.Node{Name: "d1", PodCIDR: "10.9.1.0/24", Address: "172.31.4.11"})
		require.NoError(t, d.Fake.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), otherID(), ""))
		_, err = Connect(t.Context(), connectOptions(a, d), &fakecluster.Recorder{})
		assert.ErrorContains(t, "connect", err, `peering "b" with another cluster`)
		fakecluster.Must(t, removal.Reset, removal.ResetOptions{Cluster: b.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute})
		o = connectOptions(a, b)
		o.Remote.Name = "rome"
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(hint.Of(err), "disconnect b --one-side") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
	})
}

func otherID() runtime.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-d"}}
}

func TestLostKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		before := acceptedKey(t, tunnelOf(b.Peering(t)))
		require.NoError(t, a.Fake.CoreV1().Secrets(a.Namespace).Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}))
		got := fakecluster.Must(t, Connect, connectOptions(a, b))
		checkKeys(t, a, b)
		if acceptedKey(t, tunnelOf(b.Peering(t))) == before {
			t.Error("the record of the peer does not contain the new key")
		}
		restarted := func(c kube.Change) bool { return c.Kind == "Deployment" && c.Action == kube.Changed }
		if !slices.ContainsFunc(got.Objects, restarted) {
			t.Errorf("the gateway was not replaced after its keys were lost: %v", got.Objects)
		}
	})
}

func TestInterruptedConnectRollsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		b.IgnoresRecords = true
		fakecluster.Run(t, a, b)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		interrupted, stop := context.WithCancel(t.Context())
		defer stop()
		context.AfterFunc(ctx, stop)
		_, err := Connect(interrupted, connectOptions(a, b), &fakecluster.Recorder{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		fakecluster.ExpectNothingLeft(t, a, b)
	})
}

// TestConflicts: incompatibilities are an error before the first write, and a warning for an existing peering.
func TestConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fabric := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-fabric"}}
		require.NoError(t, b.Fake.Tracker().Add(fabric))
		const says = `cluster "b": Liqo's network fabric runs here`
		o, r := connectOptions(a, b), &fakecluster.Recorder{}
		_, err := Connect(t.Context(), o, r)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(hint.Of(err), "--skip-validation") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		fakecluster.ExpectNothingLeft(t, a, b)
		warned := func() bool {
			return slices.ContainsFunc(r.Lines(), func(line string) bool {
				return strings.HasPrefix(line, "warn") && strings.Contains(line, says)
			})
		}
		if warned() {
			t.Errorf("warned of what it refuses: %v", r.Lines())
		}
		o.SkipValidation = true
		if _, err := Connect(t.Context(), o, r); err != nil || !warned() {
			t.Errorf("%v, output %v", err, r.Lines())
		}
		o, r = connectOptions(a, b), &fakecluster.Recorder{}
		if again, err := Connect(t.Context(), o, r); err != nil || again.Changed || !warned() {
			t.Errorf("again: %v, changed %v, output %v", err, again.Changed, r.Lines())
		}
	})
}
