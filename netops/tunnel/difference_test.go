package tunnel

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// matching is a device in the state of testConfig.
func matching() wgtypes.Device {
	cfg := testConfig()
	return wgtypes.Device{
		PrivateKey: testKey(0xa1),
		ListenPort: int(cfg.ListenPort),
		Peers: []wgtypes.Peer{{
			PublicKey:                   cfg.Peer.PublicKey,
			PresharedKey:                testKey(0xb2),
			Endpoint:                    &net.UDPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 999},
			PersistentKeepaliveInterval: cfg.Peer.KeepAlive,
			AllowedIPs:                  ipNets([]netip.Prefix{cfg.Peer.AllowedIPs[1], cfg.Peer.AllowedIPs[0]}),
		}},
	}
}

func TestDifferenceIsNoMoreThanNeeded(t *testing.T) {
	endpoint := netip.MustParseAddrPort("192.0.2.1:51840")
	update := wgtypes.PeerConfig{PublicKey: testKey(0xc3), UpdateOnly: true}
	private, psk, port, keepAlive := testKey(0xa1), testKey(0xb2), 51840, 25*time.Second
	with := func(change func(*wgtypes.PeerConfig)) wgtypes.Config {
		p := update
		change(&p)
		return wgtypes.Config{Peers: []wgtypes.PeerConfig{p}}
	}
	all := testConfig().Peer.AllowedIPs
	for name, c := range map[string]struct {
		change   func(*wgtypes.Device)
		endpoint netip.AddrPort
		want     wgtypes.Config
	}{
		"same":          {func(*wgtypes.Device) {}, netip.AddrPort{}, wgtypes.Config{}},
		"private key":   {func(d *wgtypes.Device) { d.PrivateKey = testKey(1) }, netip.AddrPort{}, wgtypes.Config{PrivateKey: &private}},
		"listen port":   {func(d *wgtypes.Device) { d.ListenPort = 7 }, netip.AddrPort{}, wgtypes.Config{ListenPort: &port}},
		"preshared key": {func(d *wgtypes.Device) { d.Peers[0].PresharedKey = wgtypes.Key{} }, netip.AddrPort{}, with(func(p *wgtypes.PeerConfig) { p.PresharedKey = &psk })},
		"keepalive":     {func(d *wgtypes.Device) { d.Peers[0].PersistentKeepaliveInterval = 0 }, netip.AddrPort{}, with(func(p *wgtypes.PeerConfig) { p.PersistentKeepaliveInterval = &keepAlive })},
		"endpoint": {func(*wgtypes.Device) {}, endpoint, wgtypes.Config{
			ReplacePeers: true, Peers: []wgtypes.PeerConfig{newPeer(testConfig(), endpoint)},
		}},
		"endpoint, mapped form": {func(d *wgtypes.Device) {
			d.Peers[0].Endpoint = &net.UDPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 51840}
		}, endpoint, wgtypes.Config{}},
		"range missing": {func(d *wgtypes.Device) { d.Peers[0].AllowedIPs = ipNets(all[:1]) }, netip.AddrPort{}, with(func(p *wgtypes.PeerConfig) { p.AllowedIPs = ipNets(all[1:]) })},
		"range too many": {func(d *wgtypes.Device) {
			d.Peers[0].AllowedIPs = append(d.Peers[0].AllowedIPs, ipNets([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")})...)
		}, netip.AddrPort{}, with(func(p *wgtypes.PeerConfig) { p.AllowedIPs, p.ReplaceAllowedIPs = ipNets(all), true })},
		"foreign peer": {func(d *wgtypes.Device) { d.Peers = append(d.Peers, wgtypes.Peer{PublicKey: testKey(9)}) }, netip.AddrPort{}, wgtypes.Config{
			Peers: []wgtypes.PeerConfig{{PublicKey: testKey(9), Remove: true, UpdateOnly: true}},
		}},
		"no peer": {func(d *wgtypes.Device) { d.Peers = nil }, endpoint, wgtypes.Config{
			Peers: []wgtypes.PeerConfig{newPeer(testConfig(), endpoint)},
		}},
	} {
		have := matching()
		c.change(&have)
		got, differs := difference(have, testConfig(), c.endpoint)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if empty := cmp.Equal(c.want, wgtypes.Config{}); differs == empty {
			t.Errorf("%s: differs %v", name, differs)
		}
	}
}

func TestListenPortZeroTakesAny(t *testing.T) {
	cfg := testConfig()
	cfg.ListenPort = 0
	if diff, differs := difference(matching(), cfg, netip.AddrPort{}); differs {
		t.Errorf("difference %+v", diff)
	}
}
