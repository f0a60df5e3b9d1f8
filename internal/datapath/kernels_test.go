//go:build linux

package datapath

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

func TestEndpoints(t *testing.T) {
	recorded := []string{"gateway.example:51840", "192.0.2.7:1", "192.0.2.8:1"}
	for _, test := range []struct {
		heard    []netip.Addr
		recorded []string
		want     []netip.Addr
	}{
		{nil, nil, nil},
		{nil, recorded[:1], nil},
		{nil, recorded, parsed.Addresses("192.0.2.7", "192.0.2.8")},
		{parsed.Addresses("192.0.2.9"), recorded, parsed.Addresses("192.0.2.9", "192.0.2.7", "192.0.2.8")},
		{parsed.Addresses("192.0.2.9"), nil, parsed.Addresses("192.0.2.9")},
	} {
		if got := endpoints(test.heard, []records.Tunnel{{Endpoints: test.recorded}}); !slices.Equal(got, test.want) {
			t.Errorf("heard at %v, of %v: %v, want %v", test.heard, test.recorded, got, test.want)
		}
	}
}

// TestWebSocketEndpoints: addresses of URLs are exempt from the peer's ranges, as those of endpoints are.
func TestWebSocketEndpoints(t *testing.T) {
	tunnel := records.Tunnel{WebSocket: []string{"wss://gateway.example:443/", "wss://192.0.2.7:443/liqonet/b/1", "wss://[2001:db8::1]:443/"}}
	want := parsed.Addresses("192.0.2.7", "2001:db8::1")
	if got := endpoints(nil, []records.Tunnel{tunnel}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// connected returns the records of a cluster with two nodes and one peering.
func connected() records.Set {
	prefix := netip.MustParsePrefix
	mapped := func(real, seen string) records.Mapping {
		return records.Mapping{Real: prefix(real), Seen: prefix(seen)}
	}
	return records.Set{
		Fabric: &records.Fabric{
			PodCIDRs: []netip.Prefix{prefix("10.244.0.0/16")}, ExternalCIDRs: []netip.Prefix{prefix("10.70.0.0/16")}, InternalCIDRs: []netip.Prefix{prefix("10.80.0.0/16")},
			Overlay: records.Overlay{Kind: records.VXLAN, Port: 6091}, MTU: 1500,
		},
		Peerings: []records.Peering{{
			Name: "b", Number: 1, Role: records.Client, MTU: 1420,
			Peer:     records.Peer{PodCIDRs: []records.Mapping{mapped("10.244.0.0/16", "10.71.0.0/16")}, ExternalCIDRs: []records.Mapping{mapped("10.70.0.0/16", "10.81.0.0/16")}},
			Gateways: []records.LocalGateway{{Tunnels: []records.Tunnel{{Endpoints: []string{"192.0.2.1:51840"}}}}},
		}},
		Gateways: map[records.GatewayID]records.Gateway{{Peering: "b", Number: 1}: {PodIP: parsed.Addresses("10.244.1.9")[0]}},
		Nodes: []records.Node{
			{Name: "n1", Number: 1, PodCIDRs: []netip.Prefix{prefix("10.244.1.0/24")}, OverlaySources: map[records.GatewayID]netip.Addr{{Peering: "b", Number: 1}: parsed.Addresses("10.244.1.1")[0]}},
			{Name: "n2", Number: 2, PodCIDRs: []netip.Prefix{prefix("10.244.2.0/24")}, OverlaySources: map[records.GatewayID]netip.Addr{{Peering: "b", Number: 1}: parsed.Addresses("172.31.0.2")[0]}},
		},
	}
}

func TestChanges(t *testing.T) {
	if c := Changes(connected(), connected()); len(c) > 0 {
		t.Errorf("between equal records: %v", c)
	}
	narrow := connected()
	narrow.Peerings = slices.Clone(narrow.Peerings)
	narrow.Peerings[0].MTU = 1300
	got := Changes(connected(), narrow)
	if len(got) != 3 || got[0].Node != "n1" || got[1].Node != "n2" || got[2].Gateway != "b" {
		t.Fatalf("another MTU: %+v", got)
	}
	for _, c := range got {
		if text := strings.Join(c.Steps, "\n"); !strings.Contains(text, "mtu 1300") || strings.Contains(text, "firewall\n\tcreate") {
			t.Errorf("steps of %s%s:\n%s", c.Node, c.Gateway, text)
		}
	}
	got = Changes(connected(), records.Set{Fabric: connected().Fabric, Nodes: connected().Nodes})
	if len(got) != 2 || !strings.Contains(strings.Join(got[0].Steps, "\n"), "- link lqn-gw8") {
		t.Errorf("without the peering: %+v", got)
	}
}
