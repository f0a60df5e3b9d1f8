package wireguard

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

// matching returns a device in the state of testConfig.
func matching() wgtypes.Device {
	cfg := testConfig()
	return wgtypes.Device{
		PrivateKey: testKey(0xa1),
		ListenPort: int(cfg.ListenPort),
		Peers: []wgtypes.Peer{{
			PublicKey:                   cfg.PublicKey,
			PresharedKey:                testKey(0xb2),
			Endpoint:                    &net.UDPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 999},
			PersistentKeepaliveInterval: cfg.KeepAlive,
			AllowedIPs:                  ipNets([]netip.Prefix{cfg.AllowedIPs[1], cfg.AllowedIPs[0]}),
		}},
	}
}

// deviation is a difference of a device from the desired one, with the change that removes it.
type deviation struct {
	name     string
	change   func(have *wgtypes.Device)
	endpoint netip.AddrPort // desired; the zero value: any
	want     wgtypes.Config
}

// deviations returns those of the device, and then those of its peer.
func deviations(cfg Config) []deviation {
	private, psk, port, ranges := testKey(0xa1), testKey(0xb2), int(cfg.ListenPort), cfg.AllowedIPs
	anywhere, endpoint := netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:51840")
	peers := func(p ...wgtypes.PeerConfig) wgtypes.Config { return wgtypes.Config{Peers: p} }
	update := func(change func(*wgtypes.PeerConfig)) wgtypes.Config {
		p := wgtypes.PeerConfig{PublicKey: cfg.PublicKey, UpdateOnly: true}
		change(&p)
		return peers(p)
	}
	return []deviation{
		{"same", func(*wgtypes.Device) {}, anywhere, wgtypes.Config{}},
		{"private key", func(d *wgtypes.Device) { d.PrivateKey = testKey(1) },
			anywhere, wgtypes.Config{PrivateKey: &private}},
		{"listen port", func(d *wgtypes.Device) { d.ListenPort = 7 }, anywhere, wgtypes.Config{ListenPort: &port}},
		{"mark", func(d *wgtypes.Device) { d.FirewallMark = 7 }, anywhere, wgtypes.Config{FirewallMark: new(int)}},
		{"foreign peer", func(d *wgtypes.Device) { d.Peers = append(d.Peers, wgtypes.Peer{PublicKey: testKey(9)}) },
			anywhere, peers(wgtypes.PeerConfig{PublicKey: testKey(9), Remove: true, UpdateOnly: true})},
		{"no peer", func(d *wgtypes.Device) { d.Peers = nil }, endpoint, peers(newPeer(cfg, endpoint))},

		{"preshared key", func(d *wgtypes.Device) { d.Peers[0].PresharedKey = wgtypes.Key{} },
			anywhere, update(func(p *wgtypes.PeerConfig) { p.PresharedKey = &psk })},
		{"keepalive", func(d *wgtypes.Device) { d.Peers[0].PersistentKeepaliveInterval = 0 },
			anywhere, update(func(p *wgtypes.PeerConfig) { p.PersistentKeepaliveInterval = &cfg.KeepAlive })},
		{"endpoint", func(*wgtypes.Device) {},
			endpoint, wgtypes.Config{ReplacePeers: true, Peers: []wgtypes.PeerConfig{newPeer(cfg, endpoint)}}},
		{"endpoint in IPv6 form", func(d *wgtypes.Device) {
			d.Peers[0].Endpoint = &net.UDPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 51840}
		}, endpoint, wgtypes.Config{}},
		{"range missing", func(d *wgtypes.Device) { d.Peers[0].AllowedIPs = ipNets(ranges[:1]) },
			anywhere, update(func(p *wgtypes.PeerConfig) { p.AllowedIPs = ipNets(ranges[1:]) })},
		{"range too many", func(d *wgtypes.Device) {
			d.Peers[0].AllowedIPs = append(d.Peers[0].AllowedIPs, ipNets(parsed.Prefixes("0.0.0.0/0"))...)
		}, anywhere, update(func(p *wgtypes.PeerConfig) { p.AllowedIPs, p.ReplaceAllowedIPs = ipNets(ranges), true })},
	}
}

func TestDifferenceIsNoMoreThanNeeded(t *testing.T) {
	cfg := testConfig()
	for _, c := range deviations(cfg) {
		have := matching()
		c.change(&have)
		got, differs := difference(have, cfg, c.endpoint)
		assert.Equal(t, c.name, c.want, got, cmpopts.EquateEmpty())
		if nothing := cmp.Equal(c.want, wgtypes.Config{}); differs == nothing {
			t.Errorf("%s: differs %v", c.name, differs)
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
