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

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
)

func TestDamagedDocumentsAreLeftAlone(t *testing.T) {
	for name, text := range map[string]string{"peering-b": "version: 3\n", "fabric": "version: 1\nclusterID: [nonsense]\n", "ipam": "version: 9\n"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := twoWorlds()
			if _, err := a.kube.CoreV1().ConfigMaps(a.Namespace).Create(t.Context(), recordMap(name, text), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := Connect(t.Context(), connectOptions(a, b), &recorder{})
			if err == nil || !strings.Contains(err.Error(), "ConfigMap liqonet/"+name) {
				t.Errorf("error %v", err)
			}
			object, err := a.kube.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), name, metav1.GetOptions{})
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
		c := newWorld("c", worldNode{name: "c1", podCIDR: "10.244.1.0/24", address: "172.31.3.11"})
		live(t, c)
		got, err := Connect(t.Context(), connectOptions(a, c), &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		peerings, err := inventory.Peerings(t.Context(), a.Cluster)
		if err != nil || len(peerings) != 2 {
			t.Fatal(peerings, err)
		}
		if x, y := peerings[0], peerings[1]; x.Gateways[0].OverlayID == y.Gateways[0].OverlayID || x.Gateways[0].Address == y.Gateways[0].Address ||
			x.Peer.PodCIDRs[0].Seen.Overlaps(y.Peer.PodCIDRs[0].Seen) || x.Peer.ExternalCIDR.Seen.Overlaps(y.Peer.ExternalCIDR.Seen) {
			t.Errorf("the two peerings share something: %+v\n%+v", x, y)
		}
		if got.Local.Peering != "c" {
			t.Errorf("result %+v", got.Local)
		}
		// Another cluster that calls itself b, and b under another name.
		o := connectOptions(a, c)
		o.Remote.Name = "b"
		if _, err := Connect(t.Context(), o, &recorder{}); err == nil || !strings.Contains(err.Error(), `already has the name "c"`) {
			t.Errorf("error %v", err)
		}
		d := newWorld("b", worldNode{name: "d1", podCIDR: "10.9.1.0/24", address: "172.31.4.11"})
		if err := d.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), otherID(), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := Connect(t.Context(), connectOptions(a, d), &recorder{}); err == nil || !strings.Contains(err.Error(), `peering "b" with another cluster`) {
			t.Errorf("error %v", err)
		}
		if _, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: b.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute}, &recorder{}); err != nil {
			t.Fatal(err)
		}
		o = connectOptions(a, b)
		o.Remote.Name = "rome"
		if _, err := Connect(t.Context(), o, &recorder{}); err == nil || !strings.Contains(hint.Of(err), "disconnect b --one-side") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
	})
}

func otherID() runtime.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-d"}}
}

func TestLostKeysAreMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		before := tunnelOf(peeringOf(t, b)).PublicKey
		if err := a.kube.CoreV1().Secrets(a.Namespace).Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := Connect(t.Context(), connectOptions(a, b), &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		checkKeys(t, a, b)
		if tunnelOf(peeringOf(t, b)).PublicKey == before {
			t.Error("the peer was not told of the new key")
		}
		restarted := func(c cluster.Change) bool { return c.Kind == "Deployment" && c.Action == cluster.Deleted }
		if !slices.ContainsFunc(got.Objects, restarted) {
			t.Errorf("the gateway goes on with keys that are no more: %v", got.Objects)
		}
	})
}

func TestInterruptedConnectUndoesWhatItMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		b.deaf = true
		live(t, a, b)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		interrupted, stop := context.WithCancel(t.Context())
		defer stop()
		context.AfterFunc(ctx, stop)
		_, err := Connect(interrupted, connectOptions(a, b), &recorder{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if left := append(a.left(t), b.left(t)...); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}

// TestClashes wants what cannot work beside liqonet refused before anything is written, and said where it is there
// already.
func TestClashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		fabric := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-fabric"}}
		if err := b.kube.Tracker().Add(fabric); err != nil {
			t.Fatal(err)
		}
		const says = `cluster "b": Liqo's network fabric runs here`
		o, r := connectOptions(a, b), &recorder{}
		_, err := Connect(t.Context(), o, r)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(hint.Of(err), "--skip-validation") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		if left := append(a.left(t), b.left(t)...); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		warned := func() bool {
			return slices.ContainsFunc(r.said(), func(line string) bool {
				return strings.HasPrefix(line, "warn") && strings.Contains(line, says)
			})
		}
		if warned() {
			t.Errorf("warned of what it refuses: %v", r.said())
		}
		o.SkipValidation = true
		if _, err := Connect(t.Context(), o, r); err != nil || !warned() {
			t.Errorf("%v, said %v", err, r.said())
		}
		o, r = connectOptions(a, b), &recorder{}
		if again, err := Connect(t.Context(), o, r); err != nil || again.Changed || !warned() {
			t.Errorf("again: %v, changed %v, said %v", err, again.Changed, r.said())
		}
	})
}
