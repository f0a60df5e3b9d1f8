package wireguard

import (
	"net/netip"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/conn/bindtest"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/tuntest"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// newDevice returns a wireguard-go device without a kernel.
func newDevice(t *testing.T) *device.Device {
	bind := bindtest.NewChannelBinds()[0]
	d := device.NewDevice(tuntest.NewChannelTUN().TUN(), bind, device.NewLogger(device.LogLevelSilent, ""))
	t.Cleanup(d.Close)
	return d
}

func read(t *testing.T, d *device.Device) wgtypes.Device {
	t.Helper()
	text, err := d.IpcGet()
	require.NoError(t, err)
	have, err := decodeUAPI(text)
	require.NoError(t, err)
	return have
}

// bindtest supports neither ports nor addresses, so listen port and endpoint are not tested here.
func TestUAPIBringsADeviceIntoState(t *testing.T) {
	d := newDevice(t)
	cfg := testConfig()
	cfg.ListenPort = 0
	set := func(c wgtypes.Config) {
		t.Helper()
		require.NoError(t, d.IpcSet(encodeUAPI(c)))
	}
	foreign := wgtypes.PeerConfig{PublicKey: testKey(9), AllowedIPs: ipNets([]netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")})}
	set(wgtypes.Config{Peers: []wgtypes.PeerConfig{foreign}})
	diff, differs := difference(read(t, d), cfg, netip.AddrPort{})
	if !differs {
		t.Fatal("an empty device does not differ")
	}
	set(diff)
	have := read(t, d)
	if rest, differs := difference(have, cfg, netip.AddrPort{}); differs {
		t.Errorf("after the difference was applied, %d peers still differ; private key too: %v", len(rest.Peers), rest.PrivateKey != nil)
	}
	if len(have.Peers) != 1 || have.PrivateKey != testKey(0xa1) || have.Peers[0].PresharedKey != testKey(0xb2) {
		t.Errorf("device has %d peers, or other keys", len(have.Peers))
	}

	cfg.PresharedKey, cfg.AllowedIPs = Secret{}, cfg.AllowedIPs[1:]
	diff, _ = difference(have, cfg, netip.AddrPort{})
	set(diff)
	have = read(t, d)
	assert.Equal(t, "ranges", ipNets(cfg.AllowedIPs), have.Peers[0].AllowedIPs)
	if have.Peers[0].PresharedKey != (wgtypes.Key{}) {
		t.Error("the preshared key is still there")
	}
	set(wgtypes.Config{ReplacePeers: true})
	if have := read(t, d); len(have.Peers) != 0 {
		t.Errorf("%d peers after all were removed", len(have.Peers))
	}
}

func TestEncodeUAPIOfPortAndEndpoint(t *testing.T) {
	port := 51840
	peer := newPeer(testConfig(), netip.MustParseAddrPort("192.0.2.1:51840"))
	text := encodeUAPI(wgtypes.Config{ListenPort: &port, Peers: []wgtypes.PeerConfig{peer}})
	if !strings.HasPrefix(text, "listen_port=51840\n") || !strings.Contains(text, "\nendpoint=192.0.2.1:51840\n") {
		t.Error("port or endpoint is not in the text")
	}
}

func TestDecodeUAPI(t *testing.T) {
	have, err := decodeUAPI("listen_port=51840\nfwmark=1\npublic_key=" + strings.Repeat("ab", 32) +
		"\nendpoint=[2001:db8::1]:7\nlast_handshake_time_sec=10\nlast_handshake_time_nsec=5\ntx_bytes=3\nrx_bytes=4\n")
	require.NoError(t, err)
	p := have.Peers[0]
	if have.ListenPort != 51840 || have.FirewallMark != 1 || endpointOf(p).String() != "[2001:db8::1]:7" || p.LastHandshakeTime.UnixNano() != 10e9+5 ||
		p.TransmitBytes != 3 || p.ReceiveBytes != 4 {
		t.Errorf("read %+v", have)
	}
	for _, line := range []string{"listen_port=x", "private_key=ab", "public_key=", "public_key=" + strings.Repeat("ab", 32) + "\nallowed_ip=x"} {
		if _, err := decodeUAPI(line + "\n"); err == nil {
			t.Errorf("%s: accepted", line)
		}
	}
}
