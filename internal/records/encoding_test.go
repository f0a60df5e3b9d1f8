package records_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestLaterFields: Decode ignores fields of a later release in every object of a record.
func TestLaterFields(t *testing.T) {
	addr := netip.MustParseAddr
	gateway := records.GatewayID{Peering: "b", Number: 2}
	readsLater(t, peering())
	readsLater(t, records.Fabric{
		Version: records.SchemaVersion, ClusterID: "x", Name: "a", Overlay: records.Overlay{Kind: records.VXLAN, Port: 6091},
		ExternalCIDRs: parsed.Prefixes("10.70.0.0/16"), InternalCIDRs: parsed.Prefixes("10.80.0.0/16"),
	})
	readsLater(t, records.Gateway{Version: records.SchemaVersion, Pod: "p", Node: "n", PodIP: addr("10.244.1.9")})
	readsLater(t, records.Node{
		Version: records.SchemaVersion, Name: "n", Number: 7, Refused: map[string]string{"b": "why"},
		OverlaySources: map[records.GatewayID]netip.Addr{gateway: addr("172.31.1.11")},
		ForwardDrops:   []records.ForwardDrop{{Chain: "ip filter FORWARD"}},
		Drift:          records.Drift{Times: 1, Last: time.Unix(1700000000, 0).UTC(), What: "a route"},
		Surroundings: records.Surroundings{
			Ranges: []records.UsedRange{{Range: netip.MustParsePrefix("192.0.2.0/24"), Use: records.UseRoute}},
		},
		Witness: map[records.GatewayID]string{gateway: ""},
	})
	readsLater(t, records.Status{
		Version: records.SchemaVersion, TunnelStatus: records.TunnelStatus{Path: records.PathSize{Asked: true}},
		Tunnels: []records.TunnelStatus{{Loss: 0.5}, {}}, Nodes: []records.NodeStatus{{Name: "n"}},
	})
}

func readsLater[T records.Document](t *testing.T, want T) {
	t.Helper()
	text, err := records.Encode(want)
	require.NoError(t, err)
	got, err := records.Decode[T](later(t, text))
	if diff := cmp.Diff(want, got, comparable); err != nil || diff != "" {
		t.Errorf("%T: %v (-want +got):\n%s", want, err, diff)
	}
}

// later adds a field to each object of a document, except to maps whose keys are names.
func later(t *testing.T, text string) string {
	var document any
	require.NoError(t, yaml.Unmarshal([]byte(text), &document))
	var add func(path string, value any)
	add = func(path string, value any) {
		switch v := value.(type) {
		case []any:
			for _, one := range v {
				add(path, one)
			}
		case map[string]any:
			for key, one := range v {
				add(key, one)
			}
			if !slices.Contains([]string{"overlaySources", "refused", "witness"}, path) {
				v["later"] = map[string]any{"some": []any{1, "x"}}
			}
		}
	}
	add("", document)
	added, err := json.Marshal(document) // JSON is YAML
	require.NoError(t, err)
	return string(added)
}

// TestReplace: Replace keeps a record with fields of a later release or returns an error. It never drops these fields.
func TestReplace(t *testing.T) {
	live, err := records.Encode(peering())
	require.NoError(t, err)
	changed := peering()
	changed.MTU = 1400
	wanted, err := records.Encode(changed)
	require.NoError(t, err)
	if got, err := records.Replace[records.Peering](live, wanted); err != nil || got != wanted {
		t.Errorf("a record of this release is replaced by %q, %v", got, err)
	}
	for name, c := range map[string]struct{ old, new, field string }{
		"of the record":           {"mtu: 1420", "mtu: 1420\nzone: x", "zone"},
		"of an object in a list":  {"- tunnels:\n  - endpoints:\n    - 192.0.2.1:30001", "- zone: x\n  tunnels:\n  - endpoints:\n    - 192.0.2.1:30001", "gateways[1].zone"},
		"another only by capital": {"mtu: 1420", "mtu: 1420\nMTU: 9000", "MTU"},
	} {
		t.Run(name, func(t *testing.T) {
			later := strings.Replace(live, c.old, c.new, 1)
			if got, err := records.Replace[records.Peering](later, live); err != nil || got != later {
				t.Errorf("with nothing to change: %v, becomes\n%s", err, got)
			}
			_, err := records.Replace[records.Peering](later, wanted)
			unknown, ok := errors.AsType[*records.UnknownFieldsError](err)
			if !ok || !slices.Equal(unknown.Fields, []string{c.field}) || !strings.Contains(err.Error(), c.field) || hint.Of(err) == "" {
				t.Errorf("with something to change: %v, want field %s", err, c.field)
			}
		})
	}
}

// TestReportsAreJSON: records that helpers write must be JSON. As in YAML, duplicate keys are errors.
func TestReportsAreJSON(t *testing.T) {
	s := records.Status{Version: records.SchemaVersion, Time: time.Unix(1e9, 0).UTC(), Pod: "gateway-b-x", Implementation: records.Kernel, Overlay: records.Geneve}
	s.Nodes = append(s.Nodes, records.NodeStatus{Name: "n", RTT: records.Duration(time.Millisecond), Refused: "\"quoted\": <&>"})
	text, err := records.Encode(s)
	if err != nil || !strings.HasPrefix(text, "{") {
		t.Fatalf("%v\n%s", err, text)
	}
	if got, err := records.Decode[records.Status](text); err != nil || !cmp.Equal(got, s, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})) {
		t.Errorf("%v, read %+v", err, got)
	}
	if _, err := records.Decode[records.Status]("# YAML\n" + text); err == nil {
		t.Error("YAML is read")
	}
	for _, damaged := range []string{text[:len(text)-1], strings.Replace(text, `"pod":`, `"pod":"other","pod":`, 1)} {
		if _, err := records.Decode[records.Status](damaged); err == nil {
			t.Errorf("read: %s", damaged)
		}
	}
	if _, err := records.Decode[records.Status](strings.Replace(text, `"pod":`, `"later":1,"pod":`, 1)); err != nil {
		t.Errorf("a field of a later release: %v", err)
	}
}
