//go:build linux

package gateway

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	names "liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/tunnel/plain"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
)

// TestGatewayState checks that nodes without the gateway, ranges that a node cannot claim and hosts that are not
// outside the cluster are omitted.
func TestGatewayState(t *testing.T) {
	via := func(source string) map[records.GatewayID]netip.Addr {
		return map[records.GatewayID]netip.Addr{sample.FirstGateway("b"): netip.MustParseAddr(source)}
	}
	v := view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering(), nodes: []reportedNode{
		{Node: &records.Node{
			Name: "n1", Number: 7, OverlaySources: via("172.31.1.11"),
			PodCIDRs: parsed.Prefixes("10.244.1.0/24", "10.250.0.0/24"), Pods: parsed.Addresses("10.244.9.3", "10.96.0.1"),
		}},
		{Node: &records.Node{Name: "n2", Number: 8, PodCIDRs: parsed.Prefixes("10.244.2.0/24")}},
		{Node: &records.Node{Name: "n3", Number: 0x8008, OverlaySources: via("172.31.1.13"), PodCIDRs: parsed.Prefixes("10.244.3.0/24")}},
	}}
	v.pod = netip.MustParseAddr("10.244.1.9")
	expose := func(host, address string) records.Exposed {
		return records.Exposed{Host: netip.MustParseAddr(host), Address: netip.MustParseAddr(address)}
	}
	v.peering.Exposed = []records.Exposed{
		expose("198.51.100.7", "10.70.128.1"), expose("10.244.3.3", "10.70.128.2"), expose("198.51.100.8", "10.70.0.7"), expose("198.51.100.9", "10.71.128.1"),
	}
	got := v.state()
	want := netops.GatewayState(netops.GatewayConfig{
		Overlay:      netops.OverlayConfig{Kind: netops.KindVXLAN, Port: 6091, MTU: 1450},
		Pod:          netip.MustParseAddr("10.244.1.9"),
		Exposed:      []netops.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}},
		Internal:     netip.MustParseAddr("10.80.128.8"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"), ExternalCIDR: netip.MustParsePrefix("10.70.0.0/16"),
		Pods: parsed.Prefixes("10.244.0.0/16"), VNI: 8, MTU: 1370, ClampMSS: true,
		Peer: []netops.Mapping{
			{Real: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.11.0.0/16")},
			{Real: netip.MustParsePrefix("10.70.0.0/16"), Seen: netip.MustParsePrefix("10.71.0.0/16")},
		},
		Tunnels: []netops.GatewayTunnel{{
			Link: netops.Tunnel, Address: netip.MustParsePrefix("169.254.18.2/30"), Peer: netip.MustParseAddr("169.254.18.1"), Used: true,
		}},
		Nodes: []netops.GatewayNode{{
			Internal: netip.MustParseAddr("10.80.0.7"), Source: netip.MustParseAddr("172.31.1.11"),
			Pods: parsed.Prefixes("10.244.1.0/24", "10.244.9.3/32"),
		}},
	})
	if diff := netops.Diff(got, want); !diff.Empty() {
		t.Errorf("from what is to what should be:\n%s", diff)
	}
}

func TestTunnelConfig(t *testing.T) {
	v := view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering()}
	client, err := v.tunnel(wireguard.Driver{}, 1)
	require.NoError(t, err)
	ranges := parsed.Prefixes("169.254.18.1/32", "10.244.0.0/16", "10.70.0.0/16")
	if !slices.Equal(client.AllowedIPs, ranges) {
		t.Errorf("allowed %v, want %v: the peer's own addresses", client.AllowedIPs, ranges)
	}
	if client.ListenPort != 0 || client.KeepAlive != keepAlive || !slices.Equal(client.Endpoints, []string{"192.0.2.7:30000"}) {
		t.Errorf("client %+v: want any port, keepalives and the server's endpoint", client)
	}
	v.peering.Role, v.own().Tunnels[0].Endpoints = records.Server, nil
	server, err := v.tunnel(wireguard.Driver{}, 1)
	require.NoError(t, err)
	if server.ListenPort != 51840 || server.KeepAlive != 0 {
		t.Errorf("server %+v: want port 51840, no keepalives", server)
	}
	v.own().Tunnels[0].Driver = records.Driver{WireGuard: names.Peer{PublicKey: "damaged"}}
	if _, err := v.tunnel(wireguard.Driver{}, 1); err == nil {
		t.Error("a damaged public key is no error")
	}
}

// TestPlainTunnelConfig: packets without encryption have no mark. They go to public addresses if the user allows it.
func TestPlainTunnelConfig(t *testing.T) {
	v := view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering(), carried: map[int]bool{1: true}}
	driver := plain.New(nil, nil)
	for _, allowed := range []bool{false, true} {
		v.peering.Settings = records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: &allowed}
		c, err := v.tunnel(driver, 1)
		require.NoError(t, err)
		if c.Private == allowed || c.Mark != 0 || c.ListenPort != netops.PlainPort {
			t.Errorf("public addresses allowed %t: %+v", allowed, c)
		}
	}
}
