//go:build lab

package peering

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
)

// Tests of this file need a real API server, that of $KUBECONFIG: lab/e2e starts one and runs them.

const (
	labNamespace = "ipam-writers"
	labWriters   = 64 // some seconds on two free cores; a writer with too many conflicts fails
)

// labConfig returns the connection to the API server of $KUBECONFIG.
func labConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	require.NoError(t, err)
	return config
}

// TestLabWriters has 64 connects in parallel reserve addresses for their peers, which all have the same CIDRs.
func TestLabWriters(t *testing.T) {
	config := labConfig(t)
	client := fakecluster.Client(t, config)
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labNamespace}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	kept := &kube.Cluster{Context: "a", Namespace: labNamespace, Kube: client}
	var own choose.Own
	err = inventory.UpdateReservations(ctx, kept, func(r *ipam.Registry) (err error) {
		own = choose.Own{Ranges: choose.Ranges{Pods: []netip.Prefix{prefix("10.244.0.0/16")}, Services: []netip.Prefix{prefix("10.96.0.0/16")}, Nodes: []netip.Prefix{prefix("172.31.1.0/24")}}}
		own.External, own.Internal, err = choose.ReserveOwn(r, own)
		return err
	})
	require.NoError(t, err)
	peer := records.Offer{Ranges: records.Ranges{
		PodCIDRs: []netip.Prefix{prefix("10.244.0.0/16")}, ExternalCIDRs: []netip.Prefix{prefix("10.70.0.0/16")}, NodeNetworks: []netip.Prefix{prefix("172.31.2.0/24")},
	}}

	members := make([]*member, labWriters)
	for i := range members {
		members[i] = &member{peer: peer, peering: fmt.Sprintf("peer-%d", i), site: site{own: own, cluster: &kube.Cluster{Context: "a", Namespace: labNamespace, Kube: fakecluster.Client(t, config)}}}
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			assert.NoError(t, m.reserve(ctx))
		})
	}
	all.Wait()
	t.Logf("%d clients reserved in %s", labWriters, time.Since(began).Round(time.Millisecond))

	// Decoding checks that nothing overlaps; the loop below checks that nothing is missing.
	r, err := inventory.Reservations(ctx, kept)
	require.NoError(t, err)
	for _, m := range members {
		held := r.Held(ipam.Peering(m.peering), ipam.PeerPods, ipam.PeerExternal, ipam.Gateways)
		if len(held) != 3 || r.Held(ipam.Peering(m.peering), ipam.PeerPods)[0].Range != m.addresses.Pods[0].Seen ||
			r.Held(ipam.Peering(m.peering), ipam.PeerExternal)[0].Range != m.addresses.External[0].Seen ||
			r.Held(ipam.Peering(m.peering), ipam.Gateways)[0].Range != records.GatewayAddresses(own.Internal, m.number) {
			t.Errorf("%s was given %+v, and holds %+v", m.peering, m.addresses, held)
		}
	}
}
