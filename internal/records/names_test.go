package records_test

import (
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// hostileNames are names by which a peer may try to give an object of its peering the name of another object.
var hostileNames = []string{
	"b", "b-status", "status", "status-b", "peering", "peering-b", "peering-b-status", "gateway", "gateway-b", "fabric", "ipam", "node", "verify",
	"view", "operate", "administer", "leases", "pods", "gateways", "a", "a-b", "0", "10-80-0-1",
}

// TestNamesAreUnique: no two objects of a kind share a name, whatever names the peers choose.
func TestNamesAreUnique(t *testing.T) {
	owners := map[string]string{}
	own := func(kind, name, owner string) {
		key := kind + " " + name
		if other, taken := owners[key]; taken && other != owner {
			t.Errorf("%s is of %s and of %s", key, other, owner)
		}
		owners[key] = owner
	}
	own("ConfigMap", records.FabricName, "the installation")
	own("ConfigMap", records.IPAMName, "the reservations")
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding"} {
		own(kind, records.NodeName, "the node helper")
	}
	for _, name := range hostileNames {
		require.NoError(t, records.ValidateName(name))
		own("ConfigMap", records.PeeringName(name), "the record of "+name)
		own("Service", records.ServiceName(name), "the gateways of "+name)
		own("Service", records.WebSocketName(name), "WebSocket of "+name)
		own("Ingress", records.WebSocketName(name), "WebSocket of "+name)
		own("Secret", records.WebSocketName(name), "TLS of "+name)
		for number := 1; number <= records.MaxGateways; number++ {
			id := records.GatewayID{Peering: name, Number: number}
			own("ConfigMap", id.StatusName(), "the status of gateway "+id.String())
			own("ConfigMap", id.Name(), "gateway "+id.String())
			own("Secret", id.KeysName(), "the keys of gateway "+id.String())
			for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "Deployment"} {
				own(kind, id.Name(), "gateway "+id.String())
			}
		}
	}
}

// TestIdentity: the identity of every object can be derived from its name.
func TestIdentity(t *testing.T) {
	type identity = records.Identity
	want := map[string]identity{
		records.FabricName: {Component: records.ComponentFabric},
		records.IPAMName:   {Component: records.ComponentIPAM},
	}
	for _, name := range hostileNames {
		want[records.PeeringName(name)] = identity{Component: records.ComponentPeering, Peering: name}
		for number := 1; number <= records.MaxGateways; number++ {
			id := records.GatewayID{Peering: name, Number: number}
			want[id.Name()] = identity{records.ComponentGateway, name, number}
			want[id.StatusName()] = identity{records.ComponentStatus, name, number}
		}
	}
	for name, id := range want {
		if got, ok := records.IdentityOf(name); !ok || got != id {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, id)
		}
	}
	for _, foreign := range []string{
		"", "peering", "peering-", "peering--b", "peering-b.c", "peering-B", "gateway-", "status-", "fabrics", "kube-root-ca.crt",
		"gateway1-b", "gateway9-b", "gateway22-b", "gateway-2-B", "status0-b", "peering2-b",
		"node-1", "peering-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		if got, ok := records.IdentityOf(foreign); ok {
			t.Errorf("%q counts as %+v", foreign, got)
		}
	}
}

// TestReadChecksNameLabelsAndContent: Read rejects a ConfigMap whose name, labels and content do not match.
func TestReadChecksNameLabelsAndContent(t *testing.T) {
	text, err := records.Encode(peering())
	require.NoError(t, err)
	data := map[string]string{records.DataKey: text}
	labels := func(component, peering string) map[string]string {
		return map[string]string{records.LabelComponent: component, records.LabelPeering: peering, "app.kubernetes.io/part-of": "x"}
	}
	good := labels(records.ComponentPeering, "b")
	_, err = records.Read[records.Peering]("peering-b", good, data)
	assert.NoError(t, err)
	for what, read := range map[string]func() error{
		"no labels":               func() error { _, err := records.Read[records.Peering]("peering-b", nil, data); return err },
		"another component":       func() error { return readPeering("peering-b", labels(records.ComponentStatus, "b"), data) },
		"another peering's label": func() error { return readPeering("peering-b", labels(records.ComponentPeering, "c"), data) },
		"another peering's name":  func() error { return readPeering("peering-c", labels(records.ComponentPeering, "c"), data) },
		"a gateway's name":        func() error { return readPeering("gateway-b", good, data) },
		"a foreign name":          func() error { return readPeering("peering_b", good, data) },
		"no record":               func() error { return readPeering("peering-b", good, nil) },
		"a damaged record":        func() error { return readPeering("peering-b", good, map[string]string{records.DataKey: "x"}) },
	} {
		if read() == nil {
			t.Errorf("%s: it is read", what)
		}
	}
}

func readPeering(name string, labels, data map[string]string) error {
	_, err := records.Read[records.Peering](name, labels, data)
	return err
}

// FuzzIdentity: a name that IdentityOf accepts is the canonical name of that identity.
func FuzzIdentity(f *testing.F) {
	for _, name := range hostileNames {
		f.Add("peering-" + name)
		f.Add("gateway-" + name)
		f.Add("gateway2-" + name)
		f.Add("status-" + name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, ok := records.IdentityOf(name)
		if !ok {
			return
		}
		again := map[string]string{
			records.ComponentFabric: records.FabricName, records.ComponentIPAM: records.IPAMName,
			records.ComponentPeering: records.PeeringName(id.Peering),
			records.ComponentGateway: records.GatewayID{Peering: id.Peering, Number: id.Gateway}.Name(),
			records.ComponentStatus:  records.GatewayID{Peering: id.Peering, Number: id.Gateway}.StatusName(),
		}[id.Component]
		if again != name {
			t.Errorf("%q is %+v, whose name is %q", name, id, again)
		}
	})
}

// TestLargeGateway: a gateway's record that is too long is not parsed, as this would occupy every node.
func TestLargeGateway(t *testing.T) {
	id := records.GatewayID{Peering: "b", Number: 1}
	good, err := records.Encode(records.Gateway{Version: records.SchemaVersion, Pod: "p", Node: "n", PodIP: netip.MustParseAddr("10.244.1.9")})
	require.NoError(t, err)
	for size, taken := range map[int]bool{0: true, 1 << 10: true, 1 << 16: false} {
		data := map[string]string{records.DataKey: strings.TrimSuffix(good, "}") + `,"later":"` + strings.Repeat("1", size) + `"}`}
		_, err := records.Read[records.Gateway](id.Name(), id.Identity(records.ComponentGateway).Labels(), data)
		if (err == nil) != taken {
			t.Errorf("with %d bytes more: %v", size, err)
		}
	}
}
