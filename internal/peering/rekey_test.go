package peering

import (
	"fmt"
	"sync"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
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

// TestPresharedKeyOfABackup: if the Secret of one gateway is replaced, both gateways are restarted, as gateways read
// their keys only at the start.
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
			var ended sync.Map
			for _, w := range []*fakecluster.Cluster{a, b} {
				w.Set(func() {
					w.Fake.PrependReactor("delete", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
						ended.Store(action.(clienttesting.DeleteAction).GetName(), true)
						return false, nil, nil
					})
				})
			}
			o := connectOptions(a, b)
			o.Update = true
			fakecluster.Must(t, Connect, o)
			checkKeys(t, a, b)
			for _, name := range []string{"gateway-a", "gateway-b"} {
				if _, ok := ended.Load(name); !ok {
					t.Errorf("%s was not restarted after a preshared key was replaced", name)
				}
			}
		})
	}
}
