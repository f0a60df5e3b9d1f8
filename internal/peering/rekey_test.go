package peering

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

// TestInterruptedNewKeys: connect replaces lost keys, and can be killed at any write and run again.
func TestInterruptedNewKeys(t *testing.T) {
	total := 0
	for n := 0; n <= total; n++ { // 0 only counts writes
		bubble.Run(t, fmt.Sprintf("write%02d", n), func(t *testing.T) {
			a, b := connected(t)
			before := publicKey(t, a, "b", 1)
			require.NoError(t, a.Fake.CoreV1().Secrets(a.Namespace).Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}))
			total = max(total, killedAt(t, n, a, b, doing(Connect, connectOptions(a, b))))
			fakecluster.Must(t, Connect, connectOptions(a, b))
			checkGateways(t, a, b, 1, 1)
			if publicKey(t, a, "b", 1) == before {
				t.Error("the key is the one that was lost")
			}
		})
	}
	if total < 3 {
		t.Errorf("only %d writes seen", total)
	}
}

// TestPresharedKeyOfABackup checks that the server's preshared key counts: if its Secret is replaced, both gateways are
// restarted; if the client's is, it gets the key back with which both run.
func TestPresharedKeyOfABackup(t *testing.T) {
	for _, of := range []string{"server", "client"} {
		bubble.Run(t, of, func(t *testing.T) {
			a, b := connected(t)
			w, peer := b, "a"
			if of == "client" {
				w, peer = a, "b"
			}
			k, err := inventory.ReadKeys(t.Context(), w.Cluster, fakecluster.FirstGateway(peer))
			require.NoError(t, err)
			k.Preshared = inventory.Hide(wgtypes.Key{1})
			object := inventory.KeysObject(w.Namespace, fakecluster.FirstGateway(peer), *k)
			_, err = w.Fake.CoreV1().Secrets(w.Namespace).Update(t.Context(), object, metav1.UpdateOptions{})
			require.NoError(t, err)
			before := [2]string{keyOf(t, a, "b"), keyOf(t, b, "a")}
			o := connectOptions(a, b)
			o.Update = true
			fakecluster.Must(t, Connect, o)
			checkKeys(t, a, b)
			if restarted := [2]bool{keyOf(t, a, "b") != before[0], keyOf(t, b, "a") != before[1]}; restarted != [2]bool{of == "server", of == "server"} {
				t.Errorf("gateways were restarted: %v", restarted)
			}
		})
	}
}

// keyOf returns the identifier of the keys with which the first gateway's pod starts.
func keyOf(t *testing.T, w *fakecluster.Cluster, peer string) string {
	t.Helper()
	d, err := kube.Find[*appsv1.Deployment](t.Context(), w.Cluster, fakecluster.FirstGateway(peer).Name())
	require.NoError(t, err)
	return d.Spec.Template.Annotations[templates.AnnotationKey]
}

// TestTemplateWithoutRecord checks that after a rotation that ended while the old pod drained, when the template has a
// key that the peer's record has not, connect --update writes the key before it removes temporary gateways. The report
// of the old pod may be fresh or not.
func TestTemplateWithoutRecord(t *testing.T) {
	for _, wait := range []time.Duration{0, 2 * health.Life(health.ReportEvery)} {
		synctest.Test(t, func(t *testing.T) {
			a, b, _ := rotated(t, 1, 1)
			r := newRotation(rotateOptions(a, b), &fakecluster.Recorder{})
			require.NoError(t, steps(t, r.reach, r.prepare))
			first := keyOf(t, a, "b")
			c, err := r.connector(t.Context(), true)
			require.NoError(t, err)
			require.NoError(t, c.members()[0].replaceKey(t.Context(), 0))
			require.NoError(t, steps(t, c.prepare))
			if keyOf(t, a, "b") == first {
				t.Fatal("the template has its old key")
			}
			time.Sleep(wait) //nolint:forbidigo // synctest's clock
			a.Set(func() { guardOthers(t, a, "b"); a.Interval = time.Second })
			b.Set(func() { guardOthers(t, b, "a"); b.Interval = time.Second })
			o := unchangedOptions(a, b)
			o.Update = true
			_, err = Connect(t.Context(), o, &fakecluster.Recorder{})
			require.NoError(t, err)
			checkGatewayCounts(t, a, b, 1, 1)
		})
	}
}

// TestRotationBesideFailedPod checks that a pod that the kubelet has ended, as in a shutdown of its node, and that
// stays as an object, holds up no rotation.
func TestRotationBesideFailedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 1, 1)
		require.NoError(t, a.Fake.Tracker().Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "gateway-b-evicted", Namespace: a.Namespace,
				Labels:      fakecluster.FirstGateway("b").Identity(records.ComponentGateway).Labels(),
				Annotations: map[string]string{templates.AnnotationKey: keyOf(t, a, "b")},
			},
			Spec:   corev1.PodSpec{NodeName: "a2"},
			Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated"},
		}))
		fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
		checkRotated(t, a, b, 1, 1, before)
	})
}

// TestLostKeysBesideLostNode checks that while the old pod of gateway 1 does not end, the peer keeps the key of gateway
// 2, whose pod still runs with it and carries all packets.
func TestLostKeysBesideLostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 2, 2) // a's keys first
		for n := 1; n <= 2; n++ {
			id := records.GatewayID{Peering: "b", Number: n}
			require.NoError(t, a.Fake.CoreV1().Secrets(a.Namespace).Delete(t.Context(), id.KeysName(), metav1.DeleteOptions{}))
		}
		keepsOldPod(t, a, fakecluster.FirstGateway("b"))
		o := gatewayOptions(a, b, 2, 2)
		o.Timeout = 5 * time.Minute
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(err.Error(), "does not end") {
			t.Fatalf("error %v", err)
		}
		for _, g := range b.Peering(t).Gateways {
			if acceptedKey(t, g.Tunnels[0]) == before[0] {
				t.Error("the key of the pod that does not end is accepted")
			}
			if acceptedKey(t, g.Tunnels[1]) != before[1] {
				t.Error("the key with which gateway 2 runs is not accepted")
			}
		}
	})
}

// TestUpgradeAfterInterruptedRotation checks that the key of a gateway whose pod has it already is written before
// another gateway is replaced.
func TestUpgradeAfterInterruptedRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 2, 2)
		r := newRotation(rotateOptions(a, b), &fakecluster.Recorder{})
		require.NoError(t, steps(t, r.reach, r.prepare))
		c, err := r.connector(t.Context(), true)
		require.NoError(t, err)
		require.NoError(t, c.members()[0].replaceKey(t.Context(), 0))
		require.NoError(t, steps(t, c.prepare))
		second := records.GatewayID{Peering: "b", Number: 2}
		replaced := false
		a.Fake.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			p, is := action.(clienttesting.PatchActionImpl)
			if !is || len(p.PatchOptions.DryRun) > 0 || p.GetName() != second.Name() {
				return false, nil, nil
			}
			if replaced = true; acceptedKey(t, b.Peering(t).Gateways[0].Tunnels[0]) == before[0] {
				t.Error("gateway 2 is replaced while the peer does not accept gateway 1")
			}
			return false, nil, nil
		})
		o := gatewayOptions(a, b, 2, 2)
		o.Image, o.Timeout, o.Update = "liqonet:2", 10*time.Minute, true
		fakecluster.Must(t, Connect, o)
		if !replaced {
			t.Error("gateway 2 was not replaced")
		}
	})
}
