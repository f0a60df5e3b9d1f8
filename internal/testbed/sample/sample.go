// Package sample has records, objects and kernels for tests of helpers: a cluster "a" that is the client of a peer "b"
// with the same pod CIDR, and of another one, "c".
package sample

import (
	"net/netip"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// Node returns a Node.
func Node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

// Namespace is that of all objects.
const Namespace = "liqonet"

// Patience is how long a test waits where how long is not the point.
const Patience = 2 * time.Minute

// Fabric returns the fabric of cluster a.
func Fabric() records.Fabric {
	return records.Fabric{
		Version: records.SchemaVersion, ClusterID: "id-a", Name: "a",
		PodCIDRs:      parsed.Prefixes("10.244.0.0/16"),
		ServiceCIDRs:  parsed.Prefixes("10.96.0.0/16"),
		ExternalCIDRs: parsed.Prefixes("10.70.0.0/16"),
		InternalCIDRs: parsed.Prefixes("10.80.0.0/16"),
		Overlay:       records.Overlay{Kind: records.VXLAN, Port: 6091},
		MTU:           1500,
	}
}

// Peering returns the peering with b, with one gateway.
func Peering() records.Peering {
	return records.Peering{
		Version: records.SchemaVersion, Name: "b", Number: 1, Role: records.Client,
		Peer: records.Peer{
			ClusterID: "id-b", Name: "b",
			PodCIDRs:      []records.Mapping{Mapping("10.244.0.0/16", "10.11.0.0/16")},
			ExternalCIDRs: []records.Mapping{Mapping("10.70.0.0/16", "10.71.0.0/16")},
		},
		Gateways: []records.LocalGateway{{Tunnels: []records.Tunnel{{
			Driver:     records.Driver{WireGuard: wireguard.Peer{PublicKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},
			ListenPort: 51840,
			Endpoints:  []string{"192.0.2.7:30000"},
		}}}},
		Settings: records.GatewaySettings{Implementation: new(records.Userspace)},
		MTU:      1370,
	}
}

// Gateway returns the location of its gateway.
func Gateway() records.Gateway {
	return records.Gateway{Version: records.SchemaVersion, Pod: "gateway-b-x", Node: "n1", PodIP: netip.MustParseAddr("10.244.1.9")}
}

// Mapping returns a range of a peer, and the one by which it is reached.
func Mapping(real, seen string) records.Mapping {
	return records.Mapping{Real: netip.MustParsePrefix(real), Seen: netip.MustParsePrefix(seen)}
}

// ConfigMap returns a record as written by the CLI or a gateway.
func ConfigMap(t *testing.T, name string, r records.Document) *corev1.ConfigMap {
	t.Helper()
	text, err := records.Encode(r)
	require.NoError(t, err)
	id, _ := records.IdentityOf(name)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Labels: id.Labels()},
		Data:       map[string]string{records.DataKey: text},
	}
}

// FabricMap returns the ConfigMap of a fabric.
func FabricMap(t *testing.T, f records.Fabric) *corev1.ConfigMap {
	return ConfigMap(t, records.FabricName, f)
}

// PeeringMap returns the ConfigMap of a peering.
func PeeringMap(t *testing.T, p records.Peering) *corev1.ConfigMap {
	return ConfigMap(t, records.PeeringName(p.Name), p)
}

// GatewayMap returns the ConfigMap with the location of a peering's first gateway.
func GatewayMap(t *testing.T, peering string, g records.Gateway) *corev1.ConfigMap {
	return ConfigMap(t, FirstGateway(peering).Name(), g)
}

// LeaseOf returns the Lease of a node as written by its helper, with a version of the object.
func LeaseOf(t testing.TB, n records.Node, version string) *coordinationv1.Lease {
	t.Helper()
	n.Version, n.MTU, n.Kernel = records.SchemaVersion, 1500, records.Capabilities{Release: "r"}
	text, err := records.Encode(n)
	require.NoError(t, err)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.NodeLeaseName(n.Number), ResourceVersion: version, Annotations: map[string]string{records.AnnotationNode: text},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name},
	}
}

// FirstGateway returns the ID of the first gateway of a peering.
func FirstGateway(peering string) records.GatewayID {
	return records.GatewayID{Peering: peering, Number: 1}
}

// SecondPeering returns a peering with cluster c, besides that with b.
func SecondPeering() records.Peering {
	p := Peering()
	p.Name, p.Peer.Name, p.Peer.ClusterID = "c", "c", "id-c"
	p.Peer.PodCIDRs = []records.Mapping{Mapping("10.244.0.0/16", "10.12.0.0/16")}
	p.Peer.ExternalCIDRs = []records.Mapping{Mapping("10.70.0.0/16", "10.72.0.0/16")}
	p.Number = 2
	return p
}

// SecondGateway returns the location of the gateway of SecondPeering.
func SecondGateway() records.Gateway {
	return records.Gateway{Version: records.SchemaVersion, Pod: "gateway-c-x", Node: "n2", PodIP: netip.MustParseAddr("10.244.2.9")}
}

// GatewayPod returns the pod of a peering's gateway.
func GatewayPod(peering string, g records.Gateway) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: g.Pod, Labels: records.GatewayID{Peering: peering, Number: 1}.Identity(records.ComponentGateway).Labels()},
		Spec:       corev1.PodSpec{NodeName: g.Node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if g.PodIP.IsValid() {
		pod.Status.PodIP, pod.Status.PodIPs = g.PodIP.String(), []corev1.PodIP{{IP: g.PodIP.String()}}
	}
	return pod
}

// Reserved returns the ConfigMap of the reservations for peerings.
func Reserved(t *testing.T, peerings ...records.Peering) *corev1.ConfigMap {
	t.Helper()
	registry, err := ipam.New(ipam.DefaultPools()...)
	require.NoError(t, err)
	internal := Fabric().InternalCIDR()
	require.NoError(t, registry.Reserve(ipam.Reservation{Range: internal, Owner: ipam.Cluster, Purpose: ipam.InternalCIDR}))
	for _, p := range peerings {
		require.NoError(t, registry.Reserve(ipam.Reservation{Range: records.GatewayAddresses(internal, p.Number), Owner: ipam.Peering(p.Name), Purpose: ipam.Gateways}))
		all := []ipam.Reservation{{Range: p.Peer.ExternalCIDR().Seen, Owner: ipam.Peering(p.Name), Purpose: ipam.PeerExternal, Real: p.Peer.ExternalCIDR().Real}}
		for _, m := range p.Peer.PodCIDRs {
			all = append(all, ipam.Reservation{Range: m.Seen, Owner: ipam.Peering(p.Name), Purpose: ipam.PeerPods, Real: m.Real})
		}
		for _, r := range all {
			require.NoError(t, registry.Reserve(r))
		}
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: records.IPAMName, Namespace: Namespace, Labels: map[string]string{records.LabelComponent: records.ComponentIPAM}},
		Data:       map[string]string{records.DataKey: store.Encode(registry)},
	}
}

// Noon is the time of Status.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Status returns the report of a gateway that is healthy.
func Status() records.Status {
	return records.Status{
		Version: records.SchemaVersion, Time: Noon, Pod: "gateway-b-x", Implementation: records.Kernel, Overlay: records.Geneve,
		TunnelStatus: records.TunnelStatus{
			Endpoint: netip.MustParseAddrPort("192.0.2.7:30000"), Session: records.Session{Since: Noon.Add(-time.Minute), Usable: true}, LastEcho: Noon.Add(-100 * time.Millisecond),
			RTT: records.Duration(time.Millisecond), RxBytes: 1, TxBytes: 2,
		},
		Nodes: []records.NodeStatus{{Name: "n1", LastEcho: Noon.Add(-time.Second), LastProof: Noon.Add(-time.Second)}},
	}
}
