package peering

import (
	"fmt"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
