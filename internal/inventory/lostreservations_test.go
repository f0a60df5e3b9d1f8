package inventory_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestLostReservations: ranges in use by peerings are not reserved again, even if the reservations are older than the
// peerings, as after applying an old manifest, or missing.
func TestLostReservations(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, a *fakecluster.Cluster, old *corev1.ConfigMap){
		"older": func(t *testing.T, a *fakecluster.Cluster, old *corev1.ConfigMap) {
			now, err := a.Kube.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), records.IPAMName, metav1.GetOptions{})
			require.NoError(t, err)
			now.Data = old.Data
			_, err = a.Kube.CoreV1().ConfigMaps(a.Namespace).Update(t.Context(), now, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
		"deleted": func(t *testing.T, a *fakecluster.Cluster, old *corev1.ConfigMap) {
			_, err := a.Delete(t.Context(), old)
			require.NoError(t, err)
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			c := fakecluster.Third()
			d := fakecluster.New("d", fakecluster.Node{Name: "d1", PodCIDR: "10.244.1.0/24", Address: "172.31.4.11"})
			fakecluster.Run(t, a, b, c, d)
			fakecluster.Must(t, peering.Connect, connected.Options(a, b))
			old, err := a.Kube.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), records.IPAMName, metav1.GetOptions{})
			require.NoError(t, err)
			fakecluster.Must(t, peering.Connect, connected.Options(a, c))
			lose(t, a, old)
			fakecluster.Must(t, peering.Connect, connected.Options(a, d))
			all, err := inventory.Peerings(t.Context(), a.Cluster)
			if err != nil || len(all) != 3 {
				t.Fatalf("peerings %+v, %v", all, err)
			}
			used := make(map[netip.Prefix]string)
			for _, p := range all {
				for _, seen := range []netip.Prefix{p.Peer.PodCIDRs[0].Seen, p.Peer.ExternalCIDR().Seen, records.GatewayAddresses(netip.MustParsePrefix("10.80.0.0/16"), p.Number)} {
					if other := used[seen]; other != "" {
						t.Errorf("%s is of both %s and %s", seen, other, p.Name)
					}
					used[seen] = p.Name
				}
			}
		})
	}
}
