package records_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
)

var comparable = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}, netip.AddrPort{})

// driver is what WireGuard needs to know.
var driver = records.Driver{WireGuard: wireguard.Peer{PublicKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}

func peering() records.Peering {
	pfx := netip.MustParsePrefix
	return records.Peering{
		Version: records.SchemaVersion, Name: "b", Number: 1, Role: records.Client,
		Peer: records.Peer{
			ClusterID:     "uid-b",
			Name:          "b",
			PodCIDRs:      []records.Mapping{{Real: pfx("10.244.0.0/16"), Seen: pfx("10.11.0.0/16")}},
			ExternalCIDRs: []records.Mapping{{Real: pfx("10.70.0.0/16"), Seen: pfx("10.71.0.0/16")}},
		},
		Local: records.Local{
			PodCIDRs:      []records.Mapping{{Real: pfx("10.244.0.0/16"), Seen: pfx("10.12.0.0/16")}},
			ExternalCIDRs: []records.Mapping{{Real: pfx("10.70.0.0/16"), Seen: pfx("10.72.0.0/16")}},
		},
		Gateways: []records.LocalGateway{
			{Tunnels: []records.Tunnel{{Driver: driver, ListenPort: 51840, Endpoints: []string{"192.0.2.1:30000"}}}},
			{Tunnels: []records.Tunnel{{Driver: driver, ListenPort: 51841, Endpoints: []string{"192.0.2.1:30001"},
				WebSocket: []string{"wss://[2001:db8::1]:443/", "wss://gw.example.com:443/liqonet/b/2"}}}},
		},
		MTU:     1420,
		Exposed: []records.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}},
	}
}

func TestRoundTrip(t *testing.T) {
	want := peering()
	text, err := records.Encode(want)
	require.NoError(t, err)
	got, err := records.Decode[records.Peering](text)
	require.NoError(t, err)
	assert.Equal(t, "after encode and decode", want, got, comparable)
}

// TestNodesHaveHalf checks that internal and external CIDRs have a first half for nodes. Without it, helpers would take
// addresses outside the CIDR.
func TestNodesHaveHalf(t *testing.T) {
	for text, good := range map[string]bool{"10.0.0.0/7": false, "10.0.0.0/8": true, "10.1.2.0/24": true, "10.1.2.0/25": false, "10.1.2.2/31": false, "10.1.2.3/32": false} {
		cidr := netip.MustParsePrefix(text).Masked()
		f := records.Fabric{Version: 1, ClusterID: "x", Name: "a", ExternalCIDRs: []netip.Prefix{cidr}, InternalCIDRs: []netip.Prefix{cidr}}
		if _, err := records.Encode(f); (err == nil) != good {
			t.Errorf("fabric with %s: %v", cidr, err)
		}
		p := peering()
		p.Peer.ExternalCIDRs = []records.Mapping{{Real: cidr, Seen: cidr}}
		if _, err := records.Encode(p); (err == nil) != good {
			t.Errorf("peer with %s: %v", cidr, err)
		}
	}
}

// TestNodeNetworks: a server without encryption needs the networks from which it accepts packets, as ranges.
func TestNodeNetworks(t *testing.T) {
	for network, good := range map[string]bool{"192.0.2.0/24": true, "": false, "192.0.2.1/24": false, "2001:db8::/64": false} {
		p := peering()
		p.Role, p.Settings = records.Server, withoutEncryption()
		if network != "" {
			p.Peer.NodeNetworks = []netip.Prefix{netip.MustParsePrefix(network)}
		}
		if _, err := records.Encode(p); (err == nil) != good {
			t.Errorf("node network %q: %v", network, err)
		}
	}
}

// TestUnknownLocal: a cluster whose remapped ranges at the peer are unknown writes no local field.
func TestUnknownLocal(t *testing.T) {
	p := peering()
	p.Local = records.Local{}
	text, err := records.Encode(p)
	if err != nil || strings.Contains(text, "local") {
		t.Fatalf("%v in\n%s", err, text)
	}
	got, err := records.Decode[records.Peering](text)
	if err != nil || got.Local.Known() || len(got.Local.CIDRs()) > 0 {
		t.Errorf("%+v, %v", got.Local, err)
	}
}

func TestStatusRoundTrip(t *testing.T) {
	want := records.Status{Version: records.SchemaVersion, Time: time.Unix(1700000000, 0).UTC(), TunnelStatus: records.TunnelStatus{RTT: records.Duration(1500 * time.Microsecond)}}
	text, err := records.Encode(want)
	require.NoError(t, err)
	if strings.Contains(text, "endpoint") || strings.Contains(text, "session") {
		t.Errorf("what was never seen is written down:\n%s", text)
	}
	got, err := records.Decode[records.Status](text)
	if diff := cmp.Diff(want, got, comparable); err != nil || diff != "" {
		t.Errorf("err %v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := records.Encode(peering())
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown version":   {"version: 1", "version: 9", "schema version 9, this binary knows 1"},
		"key twice":         {"mtu: 1420", "mtu: 1420\nmtu: 1400", `duplicate field "mtu"`},
		"unknown key twice": {"mtu: 1420", "mtu: 1420\nsurprise: 1\nsurprise: 1", `duplicate field "surprise"`},
		"name in capitals":  {"\nname: b", "\nName: b", `name ""`},
		"wrong type":        {"mtu: 1420", "mtu: many", "mtu"},
		"no YAML":           {"version: 1", "{", "damaged"},
		"host bits":         {"real: 10.244.0.0/16", "real: 10.244.0.1/16", "host bits"},
		"unequal mapping":   {"seen: 10.11.0.0/16", "seen: 10.11.0.0/17", "lengths differ"},
		"unequal local":     {"seen: 10.12.0.0/16", "seen: 10.12.0.0/17", "lengths differ"},
		"incomplete local":  {"  podCIDRs:\n  - real: 10.244.0.0/16\n    seen: 10.12.0.0/16", "  podCIDRs: []", "no pod CIDRs"},
		"hostile name":      {"\nname: b", "\nname: \"../b\"", "../b"},
		"short key":         {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AAAA", "public key"},
		"no driver":         {"tunnel:\n      wireguard:\n        publicKey: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "tunnel: {}", "public key"},
		"client, no server": {"endpoints:\n    - 192.0.2.1:30000", "endpoints: []", "endpoint"},
		"hex endpoint":      {"192.0.2.1:30000", "0x7f000001:30000", `endpoint "0x7f000001:30000": host must be`},
		"decimal endpoint":  {"192.0.2.1:30000", `"2130706433:30000"`, "host must be"},
		"octal endpoint":    {"192.0.2.1:30000", "0177.0.0.1:30000", "host must be"},
		"loopback endpoint": {"192.0.2.1:30000", "127.0.0.1:30000", "host must be"},
		"no TLS":            {"wss://gw", "ws://gw", "wss://HOST:PORT/PATH"},
		"loopback URL":      {"wss://gw.example.com", "wss://127.0.0.1", "host must be"},
		"URL with a user":   {"wss://gw", "wss://user@gw", "wss://HOST:PORT/PATH"},
		"URL with a query":  {"/liqonet/b/2", "/liqonet?b", "wss://HOST:PORT/PATH"},
		"URL, fragment":     {"/liqonet/b/2", "/liqonet#b", "wss://HOST:PORT/PATH"},
		"escaped URL":       {"/liqonet/b/2", "/liqonet%2fb", "wss://HOST:PORT/PATH"},
		"URL without port":  {"gw.example.com:443", "gw.example.com", "wss://HOST:PORT/PATH"},
		"URL, port 0":       {"gw.example.com:443", "gw.example.com:0", "wss://HOST:PORT/PATH"},
		"URL, high port":    {"gw.example.com:443", "gw.example.com:65536", "host:port"},
		"URL without path":  {":443/liqonet/b/2", ":443", "wss://HOST:PORT/PATH"},
		"URL, long path":    {"/liqonet/b/2", "/" + strings.Repeat("a", 200), "wss://HOST:PORT/PATH"},
		"no host":           {"192.0.2.1:30000", `":30000"`, "host:port"},
		"no port":           {"192.0.2.1:30000", `"192.0.2.1:"`, "host:port"},
		"named port":        {"192.0.2.1:30000", `"192.0.2.1:http"`, "host:port"},
		"no number":         {"number: 1\n", "", "number 0"},
		"number 0":          {"number: 1\n", "number: 0\n", "number 0"},
		"negative number":   {"number: 1\n", "number: -1\n", "number -1"},
		"huge number":       {"number: 1\n", "number: 1048576\n", "number 1048576"},
		"number of 64 bits": {"number: 1\n", "number: 2305843009213693953\n", "number 2305843009213693953"},
		"fraction":          {"number: 1\n", "number: 1.5\n", "number"},
		"tiny MTU":          {"mtu: 1420", "mtu: 100", "MTU 100"},
		"exposed twice":     {"exposed:\n", "exposed:\n- address: 10.70.128.2\n  host: 198.51.100.7\n", "there already"},
		"exposed IPv6":      {"host: 198.51.100.7", "host: 2001:db8::7", "IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("%q is not in\n%s", c.old, good)
			}
			_, err := records.Decode[records.Peering](text)
			assert.ErrorContains(t, "decode", err, c.want)
		})
	}
}

// TestPortsOfTunnels: a server listens at a different port for each tunnel of a gateway. A client's tunnels may have
// the same port at several gateways.
func TestPortsOfTunnels(t *testing.T) {
	p := peering()
	p.Gateways[0].Tunnels = append(p.Gateways[0].Tunnels, p.Gateways[1].Tunnels...)
	p.Gateways = p.Gateways[:1]
	_, err := records.Encode(p)
	require.NoError(t, err)
	p.Gateways[0].Tunnels[1].ListenPort = p.Gateways[0].Tunnels[0].ListenPort
	if _, err := records.Encode(p); err != nil {
		t.Errorf("a client's: %v", err)
	}
	p.Role = records.Server
	_, err = records.Encode(p)
	assert.ErrorContains(t, "a server's", err, "listen port 51840")
}

// TestClientReachesServer: a client has endpoints of UDP or URLs for WebSocket, and not too many of them.
func TestClientReachesServer(t *testing.T) {
	p := peering()
	tunnel := &p.Gateways[1].Tunnels[0]
	tunnel.Endpoints = nil
	_, err := records.Encode(p)
	assert.NoError(t, err)
	tunnel.WebSocket = slices.Repeat(tunnel.WebSocket, 40)
	_, err = records.Encode(p)
	assert.ErrorContains(t, "80 URLs", err, "80 URLs for WebSocket: want at most 64")
	tunnel.WebSocket = nil
	_, err = records.Encode(p)
	assert.ErrorContains(t, "neither", err, "a client needs an endpoint")
}

// TestTransportOfTunnel: a tunnel's status names the transport only while it is not UDP.
func TestTransportOfTunnel(t *testing.T) {
	for transport, good := range map[records.Transport]bool{"": true, "websocket": true, "udp": false, "\x1b[2J": false} {
		s := records.Status{Version: records.SchemaVersion, Tunnels: []records.TunnelStatus{{Transport: transport}}}
		text, err := records.Encode(s)
		if (err == nil) != good || strings.Contains(text, "transport") != (good && transport != "") {
			t.Errorf("%q: %v in %s", transport, err, text)
		}
	}
}

// TestPodsOfGateways: a gateway's pod IP must be an address that a pod can have. As the remote of a link, the kernel
// treats a multicast address as a group to join and 0.0.0.0 as unset.
func TestPodsOfGateways(t *testing.T) {
	for address, good := range map[string]bool{
		"10.244.1.9": true, "fd00::9": false, "::ffff:10.244.1.9": false, "0.0.0.0": false, "127.0.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
	} {
		g := records.Gateway{Version: records.SchemaVersion, Pod: "gateway-b-x", Node: "n1", PodIP: netip.MustParseAddr(address)}
		if _, err := records.Encode(g); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestFabricNeedsEqualLengths(t *testing.T) {
	f := records.Fabric{Version: 1, ClusterID: "x", Name: "a", ExternalCIDRs: parsed.Prefixes("10.70.0.0/16"), InternalCIDRs: parsed.Prefixes("10.80.0.0/17")}
	if _, err := records.Encode(f); err == nil {
		t.Error("external and internal CIDR of different lengths are accepted")
	}
}
