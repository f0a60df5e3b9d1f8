package status_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		got := all[0]
		if age := got.Gateways[0].ReportAge; age == nil || *age < 0 || *age > seconds.Duration(time.Second) {
			t.Errorf("age %v", age)
		}
		if len(got.Addresses) != 2 || len(got.OwnAddresses) != 2 {
			t.Errorf("addresses %v, own ones %v", got.Addresses, got.OwnAddresses)
		}
		got.Addresses, got.OwnAddresses = nil, nil
		rtt, echo, handshake := seconds.Duration(2*time.Millisecond), seconds.Duration(time.Millisecond), seconds.Duration(0)
		want := status.Peering{
			Cluster: "a", Peer: "b", Role: records.Client, State: health.Healthy, Nodes: status.NodeCount{Ready: 2, Total: 2},
			MTU: status.MTU{Value: 1420, Source: "measured", Gateways: 1500, Nodes: 1500}, Overlay: status.Overlay{Kind: records.Geneve, Port: 6091},
		}
		want.Gateways = []status.Gateway{{
			Number: 1, State: health.Healthy, Pod: "gateway-0", WireGuard: records.Kernel, ReportAge: got.Gateways[0].ReportAge, NodesReady: 2,
			Nodes: []status.NodeState{{Name: "a1", Ready: true, ProofRTT: &rtt, PathMTU: 1500}, {Name: "a2", Ready: true, ProofRTT: &rtt, PathMTU: 1500}},
			Tunnels: []status.Tunnel{{
				PeerGateway: 1, State: health.Healthy, Endpoint: "172.31.2.11:30840", HandshakeAge: &handshake, RTT: &echo, PathMTU: 1500,
			}},
		}}
		assert.Equal(t, "status", want, got)
		_, err = status.Read(t.Context(), status.Options{Cluster: b.Cluster, Peer: "x"})
		var none *inventory.NoPeeringError
		if !errors.As(err, &none) || none.Hint() != "it has: a" {
			t.Errorf("error %v", err)
		}
	})
}

// TestStatusOfFirewalls: a chain that drops packets of pods by default is shown, because packets of nodes do not pass
// it, unless helpers add rules to it.
func TestStatusOfFirewalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		expect := func(want ...string) {
			t.Helper()
			all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
			if err != nil || len(all) != 1 || all[0].State != health.Healthy {
				t.Fatal(all, err)
			}
			assert.Equal(t, "warnings", want, all[0].Warnings)
		}
		expect()
		a.ChangeNodeReport(t, func(n *records.Node) { n.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}} })
		expect(`chain "ip filter FORWARD" of node a1 drops pod traffic that its rules do not accept, which status cannot see: use connect --allow-forward --update`)
		_, err := inventory.Swap(t.Context(), a.Cluster, records.FabricName, func(live *records.Fabric) (records.Fabric, error) {
			live.AllowForward = true
			return *live, nil
		})
		require.NoError(t, err)
		expect()
	})
}

// TestStatusWithoutInstallation: that nothing is installed is no answer about peerings.
func TestStatusWithoutInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.Pair()
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err == nil || !strings.Contains(err.Error(), `not installed in namespace liqonet of cluster "a"`) {
			t.Error(all, err)
		}
		install(t, a)
		if all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster}); err != nil || len(all) != 0 {
			t.Error(all, err)
		}
	})
}

// TestStatusOfNodesWithoutPod checks that a Ready node without a pod of the helper counts, and a node that cannot run a
// helper does not.
func TestStatusOfNodesWithoutPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		windows := fakecluster.Node{Name: "a4", PodCIDR: "10.244.4.0/24", Address: "172.31.1.14"}.Object()
		windows.Labels = map[string]string{corev1.LabelOSStable: "windows"}
		_, err := a.Fake.CoreV1().Nodes().Create(t.Context(), windows, metav1.CreateOptions{})
		require.NoError(t, err)
		expect := func(state health.State, total int, reason string) {
			t.Helper()
			all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if p := all[0]; p.State != state || p.Nodes.Ready != 2 || p.Nodes.Total != total || p.Reason != reason {
				t.Errorf("%s, %d of %d nodes, %q; want %s, 2 of %d, %q", p.State, p.Nodes.Ready, p.Nodes.Total, p.Reason, state, total, reason)
			}
		}
		expect(health.Healthy, 2, "")
		a.AddNode(t, fakecluster.Node{Name: "a3", PodCIDR: "10.244.3.0/24", Address: "172.31.1.13"})
		expect(health.Degraded, 3, "no echo between gateway and node a3")
	})
}

// install makes the DaemonSet of node helpers, and nothing else.
func install(t *testing.T, w *fakecluster.Cluster) {
	t.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Name: records.NodeName, Namespace: w.Namespace, Labels: map[string]string{records.LabelComponent: records.ComponentFabric},
	}}
	set.Spec.Template.Spec.HostNetwork = true
	set.Spec.Template.Spec.Containers = []corev1.Container{{Image: "any"}}
	_, err := w.Fake.AppsV1().DaemonSets(w.Namespace).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestWatchSeesReportsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var states []health.State
		err := status.Watch(ctx, status.Options{Cluster: a.Cluster}, func(all []status.Peering) error {
			a.Set(func() { a.IgnoresRecords = true })
			if state := all[0].State; len(states) == 0 || states[len(states)-1] != state {
				states = append(states, state)
			}
			if len(states) == 2 {
				cancel()
			}
			return nil
		}, func(err error) { t.Errorf("lost: %v", err) })
		if diff := cmp.Diff([]health.State{health.Healthy, health.Unknown}, states); diff != "" || err != nil {
			t.Errorf("%s%v", diff, err)
		}
	})
}

// TestStatusOfLostReservations: status shows a range that a peering uses without a reservation, before another peering
// gets it.
func TestStatusOfLostReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		seen := a.Peering(t).Peer.PodCIDRs[0].Seen
		err := inventory.UpdateReservations(t.Context(), a.Cluster, func(r *ipam.Registry) error {
			return r.ReleaseRange(ipam.Peering("b"), ipam.PeerPods, seen)
		})
		require.NoError(t, err)
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		want := "ConfigMap ipam does not reserve " + seen.String() + `, peering "b" pods`
		assert.Equal(t, "reason", want, all[0].Reason)
	})
}
