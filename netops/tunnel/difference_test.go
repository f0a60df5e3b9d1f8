package tunnel

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// matching returns a device in the state of testConfig.
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

// deviation is a difference of a device from the desired one, with the change that removes it.
type deviation struct {
	name     string
	change   func(have *wgtypes.Device, peer *wgtypes.Peer)
	endpoint netip.AddrPort // desired; the zero value: any
	want     wgtypes.Config
}

// ofDevice returns deviations of the device and its set of peers.
func ofDevice(cfg Config) []deviation {
	private, port, endpoint := testKey(0xa1), int(cfg.ListenPort), netip.MustParseAddrPort("192.0.2.1:51840")
	peers := func(p ...wgtypes.PeerConfig) wgtypes.Config { return wgtypes.Config{Peers: p} }
	return []deviation{
		{name: "same", change: func(*wgtypes.Device, *wgtypes.Peer) {}},
		{
			name:   "private key",
			change: func(have *wgtypes.Device, _ *wgtypes.Peer) { have.PrivateKey = testKey(1) },
			want:   wgtypes.Config{PrivateKey: &private},
		},
		{
			name:   "listen port",
			change: func(have *wgtypes.Device, _ *wgtypes.Peer) { have.ListenPort = 7 },
			want:   wgtypes.Config{ListenPort: &port},
		},
		{
			name: "foreign peer",
			change: func(have *wgtypes.Device, _ *wgtypes.Peer) {
				have.Peers = append(have.Peers, wgtypes.Peer{PublicKey: testKey(9)})
			},
			want: peers(wgtypes.PeerConfig{PublicKey: testKey(9), Remove: true, UpdateOnly: true}),
		},
		{
			name:     "no peer",
			change:   func(have *wgtypes.Device, _ *wgtypes.Peer) { have.Peers = nil },
			endpoint: endpoint,
			want:     peers(newPeer(cfg, endpoint)),
		},
	}
}

// ofPeer returns deviations of the peer.
func ofPeer(cfg Config) []deviation {
	ranges, psk, endpoint := cfg.Peer.AllowedIPs, testKey(0xb2), netip.MustParseAddrPort("192.0.2.1:51840")
	update := func(change func(*wgtypes.PeerConfig)) wgtypes.Config {
		p := wgtypes.PeerConfig{PublicKey: cfg.Peer.PublicKey, UpdateOnly: true}
		change(&p)
		return wgtypes.Config{Peers: []wgtypes.PeerConfig{p}}
	}
	return []deviation{
		{
			name:   "preshared key",
			change: func(_ *wgtypes.Device, peer *wgtypes.Peer) { peer.PresharedKey = wgtypes.Key{} },
			want:   update(func(p *wgtypes.PeerConfig) { p.PresharedKey = &psk }),
		},
		{
			name:   "keepalive",
			change: func(_ *wgtypes.Device, peer *wgtypes.Peer) { peer.PersistentKeepaliveInterval = 0 },
			want:   update(func(p *wgtypes.PeerConfig) { p.PersistentKeepaliveInterval = &cfg.Peer.KeepAlive }),
		},
		{
			name:     "endpoint",
			change:   func(*wgtypes.Device, *wgtypes.Peer) {},
			endpoint: endpoint,
			want:     wgtypes.Config{ReplacePeers: true, Peers: []wgtypes.PeerConfig{newPeer(cfg, endpoint)}},
		},
		{
			name: "endpoint in IPv6 form",
			change: func(_ *wgtypes.Device, peer *wgtypes.Peer) {
				peer.Endpoint = &net.UDPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 51840}
			},
			endpoint: endpoint,
		},
		{
			name:   "range missing",
			change: func(_ *wgtypes.Device, peer *wgtypes.Peer) { peer.AllowedIPs = ipNets(ranges[:1]) },
			want:   update(func(p *wgtypes.PeerConfig) { p.AllowedIPs = ipNets(ranges[1:]) }),
		},
		{
			name: "range too many",
			change: func(_ *wgtypes.Device, peer *wgtypes.Peer) {
				peer.AllowedIPs = append(peer.AllowedIPs, ipNets(prefixes("0.0.0.0/0"))...)
			},
			want: update(func(p *wgtypes.PeerConfig) { p.AllowedIPs, p.ReplaceAllowedIPs = ipNets(ranges), true }),
		},
	}
}

func TestDifferenceIsNoMoreThanNeeded(t *testing.T) {
	cfg := testConfig()
	for _, c := range slices.Concat(ofDevice(cfg), ofPeer(cfg)) {
		have := matching()
		c.change(&have, &have.Peers[0])
		got, differs := difference(have, cfg, c.endpoint)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
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
