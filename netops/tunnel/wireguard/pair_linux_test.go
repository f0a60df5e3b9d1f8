package wireguard

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/tunnel"
)

const (
	serverTunnel = "169.254.18.1"
	clientTunnel = "169.254.18.2"
	linkName     = "lqn-tunnel"
)

// implementations are those that this kernel must offer: LIQONET_TEST_WIREGUARD, or userspace alone.
func implementations() []string {
	names := strings.Fields(os.Getenv("LIQONET_TEST_WIREGUARD"))
	if len(names) == 0 {
		return []string{Userspace}
	}
	return names
}

func forEachImplementation(t *testing.T, test func(*testing.T, *pair)) {
	for _, implementation := range implementations() {
		t.Run(implementation, func(t *testing.T) { test(t, newPair(t, implementation)) })
	}
}

// pair is a server and a client on one wire.
type pair struct {
	server, client             *host
	serverConfig, clientConfig Config
	serverDevice, clientDevice *Device
}

// newPair opens the server first: an initiator without an answer waits five seconds.
func newPair(t *testing.T, implementation string) *pair {
	p := &pair{server: newHost(t), client: newHost(t)}
	p.server.tunnel, p.client.tunnel = serverTunnel+"/30", clientTunnel+"/30"
	connect(p.server, p.client, "wire", "192.0.2.1/24", "192.0.2.11/24")
	serverKey, clientKey := newKey(t), newKey(t)
	psk, err := wgtypes.GenerateKey()
	require.NoError(t, err)
	p.serverConfig = Config{
		Config:     tunnel.Config{Implementation: implementation, Name: linkName, ListenPort: 51840, MTU: 1440, AllowedIPs: parsed.Prefixes(clientTunnel + "/32")},
		PrivateKey: NewSecret(serverKey), PresharedKey: NewSecret(psk), PublicKey: clientKey.PublicKey(),
	}
	p.clientConfig = Config{
		Config: tunnel.Config{
			Implementation: implementation, Name: linkName, MTU: 1440, AllowedIPs: parsed.Prefixes(serverTunnel + "/32"),
			Endpoints: []string{"192.0.2.1:51840"}, KeepAlive: 25 * time.Second,
		},
		PrivateKey: NewSecret(clientKey), PresharedKey: NewSecret(psk), PublicKey: serverKey.PublicKey(),
	}
	p.serverDevice = open(p.server, p.serverConfig)
	p.clientDevice = open(p.client, p.clientConfig)
	return p
}

// begin lets the client ask a server of datagrams, and returns its address when another handshake is welcome.
func (p *pair) begin() netip.AddrPort {
	target := p.server.serveUDP(serverTunnel + ":7000")
	p.client.mustAsk(target)
	settle(p.client.t, p.clientDevice)
	return target
}

func newKey(t *testing.T) wgtypes.Key {
	key, err := wgtypes.GeneratePrivateKey()
	require.NoError(t, err)
	return key
}

// open opens a device in the host; it is removed when the test ends.
func open(h *host, cfg Config) (d *Device) {
	h.t.Helper()
	h.Inside(func() (err error) {
		d, err = Open(cfg, testLog(h.t), func() {})
		return err
	})
	h.t.Cleanup(func() { _ = d.Close(true) })
	h.setUp(cfg)
	return d
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func (h *host) apply(d *Device, cfg Config) (changed bool) {
	h.t.Helper()
	h.Inside(func() (err error) {
		changed, err = d.Apply(cfg)
		return err
	})
	h.setUp(cfg)
	return changed
}

// setUp does what package netops does with the link.
func (h *host) setUp(cfg Config) {
	h.t.Helper()
	if h.tunnel != "" {
		h.IP("addr replace " + h.tunnel + " dev " + cfg.Name)
	}
	h.IP(fmt.Sprintf("link set %s mtu %d up", cfg.Name, cfg.MTU))
}

func (h *host) renew(d *Device) {
	h.t.Helper()
	h.Inside(func() error { return d.Renew(h.t.Context(), nil, nil) })
}

// settle waits until another handshake is welcome: WireGuard takes one in 20 ms from a peer, and ignores the
// clock's last 24 bits, so that a second one within 17 ms looks like a replay.
func settle(t *testing.T, d *Device) {
	t.Helper()
	wait.Until(t, "a handshake that is 50 ms old", patience, func() bool {
		last := stats(t, d).Session.Since
		return !last.IsZero() && time.Since(last) > 50*time.Millisecond
	})
}

// deviceStats has what the tests read of a device.
type deviceStats struct {
	tunnel.Stats
	ListenPort int
}

func stats(t *testing.T, d *Device) deviceStats {
	t.Helper()
	s, err := d.Stats()
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.read()
	require.NoError(t, err)
	return deviceStats{s, have.ListenPort}
}
