package cli

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// TestNamesOfACluster: completion offers the peers, owners and namespaces of a cluster.
func TestNamesOfACluster(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	err := inventory.UpdateReservations(t.Context(), c, func(r *ipam.Registry) error {
		return errors.Join(
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.244.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR}),
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.71.0.0/16"), Owner: ipam.Peering("b"), Purpose: ipam.PeerPods}),
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.9.0.0/16"), Owner: ipam.User("vpn"), Purpose: ipam.Reserved}),
		)
	})
	require.NoError(t, err)
	for _, name := range []string{records.PeeringName("b"), records.PeeringName("north")} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
		_, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "net"}}
	_, err = c.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	for want, list := range map[string]names{"north": peers, "vpn": owners, "net": namespaces} {
		found, err := list(t.Context(), c)
		if err != nil || !slices.Contains(found, want) {
			t.Errorf("%v, found %q, want %q among them", err, found, want)
		}
	}
	if found, _ := owners(t.Context(), c); len(found) != 1 {
		t.Errorf("owners %q: the cluster and its peerings are none to complete", found)
	}
}
