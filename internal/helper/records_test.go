//go:build linux

package helper

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
)

func testNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

// Records of a cluster "a" that is the client of a peer "b" with the same pod CIDR.

const testNamespace = "liqonet"

// patience is how long a test waits where how long is not the point.
const patience = 2 * time.Minute

func testFabric() records.Fabric {
	return records.Fabric{
		Version: records.SchemaVersion, ClusterID: "id-a", Name: "a",
		PodCIDRs:     parsed.Prefixes("10.244.0.0/16"),
		ServiceCIDRs: parsed.Prefixes("10.96.0.0/16"),
		ExternalCIDR: netip.MustParsePrefix("10.70.0.0/16"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		Overlay:      records.Overlay{Kind: records.VXLAN, Port: 6091},
		MTU:          1500,
	}
}

func testPeering() records.Peering {
	return records.Peering{
		Version: records.SchemaVersion, Name: "b", Role: records.Client,
		Peer: records.Peer{
			ClusterID: "id-b", Name: "b",
			PodCIDRs:     []records.Mapping{mapping("10.244.0.0/16", "10.11.0.0/16")},
			ExternalCIDR: mapping("10.70.0.0/16", "10.71.0.0/16"),
		},
		Gateways: []records.LocalGateway{{OverlayID: 7, Address: netip.MustParseAddr("10.80.128.1"), Tunnels: []records.Tunnel{{
			Driver:      records.Driver{WireGuard: wireguard.Peer{PublicKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},
			Address:     netip.MustParsePrefix("169.254.18.2/30"),
			PeerAddress: netip.MustParseAddr("169.254.18.1"),
			ListenPort:  51840,
			Endpoints:   []string{"192.0.2.7:30000"},
		}}}},
		Settings: records.GatewaySettings{Implementation: new(records.Userspace)},
		MTU:      1370,
	}
}

func testGateway() records.Gateway {
	return records.Gateway{Version: records.SchemaVersion, Pod: "gateway-b-x", Node: "n1", PodIP: netip.MustParseAddr("10.244.1.9")}
}

func mapping(real, seen string) records.Mapping {
	return records.Mapping{Real: netip.MustParsePrefix(real), Seen: netip.MustParsePrefix(seen)}
}

// configMap returns a record as written by the CLI or a gateway.
func configMap(t *testing.T, name string, r records.Document) *corev1.ConfigMap {
	t.Helper()
	text, err := records.Encode(r)
	require.NoError(t, err)
	id, _ := records.IdentityOf(name)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testNamespace, Labels: id.Labels()},
		Data:       map[string]string{records.DataKey: text},
	}
}

func fabricMap(t *testing.T, f records.Fabric) *corev1.ConfigMap {
	return configMap(t, records.FabricName, f)
}

func peeringMap(t *testing.T, p records.Peering) *corev1.ConfigMap {
	return configMap(t, records.PeeringName(p.Name), p)
}

func gatewayMap(t *testing.T, peering string, g records.Gateway) *corev1.ConfigMap {
	return configMap(t, firstGateway(peering).Name(), g)
}

// leaseOf returns the Lease of a node as written by its helper, with a version of the object.
func leaseOf(t testing.TB, n records.Node, version string) *coordinationv1.Lease {
	t.Helper()
	n.Version, n.MTU, n.Kernel = records.SchemaVersion, 1500, records.Capabilities{Release: "r"}
	text, err := records.Encode(n)
	require.NoError(t, err)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.AddressLeaseName(n.Internal), ResourceVersion: version, Annotations: map[string]string{records.AnnotationNode: text},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name},
	}
}

// firstGateway returns the ID of the first gateway of a peering.
func firstGateway(peering string) records.GatewayID {
	return records.GatewayID{Peering: peering, Number: 1}
}
