package wireguard

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/require"
)

// beforeRetry is shorter than the five seconds after which WireGuard itself repeats a handshake.
const beforeRetry = 4 * time.Second

func TestRenewFindsAServerThatMoved(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.server.serveUDP(serverTunnel + ":7000")
		client := p.clientConfig
		client.Endpoints = []string{"192.0.2.1:51840", "192.0.2.2:51840"}
		p.client.apply(p.clientDevice, client)
		p.client.mustAsk(target)
		settle(t, p.clientDevice)
		before := stats(t, p.clientDevice)

		p.server.IP("addr del 192.0.2.1/24 dev wire")
		p.server.IP("addr add 192.0.2.2/24 dev wire")
		p.client.renew(p.clientDevice)
		took, err := p.client.ask(target, beforeRetry)
		require.NoError(t, err)
		t.Logf("answer %v after the renewal", took)
		now := stats(t, p.clientDevice)
		if now.Endpoint.String() != "192.0.2.2:51840" || !now.Session.Since.After(before.Session.Since) {
			t.Errorf("before %+v, now %+v", before, now)
		}
		if now.RxBytes <= before.RxBytes || now.TxBytes <= before.TxBytes {
			t.Errorf("counters went back: before %+v, now %+v", before, now)
		}
		if now.ListenPort == before.ListenPort {
			t.Errorf("still sends from port %d", now.ListenPort)
		}
		if p.client.apply(p.clientDevice, client) {
			t.Error("after a renewal, the same configuration changed something")
		}
	})
}

func TestRenewReconnectsToARestartedServer(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.begin()
		require.NoError(t, p.serverDevice.Close(true))
		p.serverDevice = open(p.server, p.serverConfig)
		target := p.server.serveUDP(serverTunnel + ":7001")
		p.client.renew(p.clientDevice)
		if _, err := p.client.ask(target, beforeRetry); err != nil {
			t.Error(err)
		}
		settle(t, p.serverDevice)
		// The server, which has no configured endpoints, keeps the last endpoint of the client.
		p.server.renew(p.serverDevice)
		if got := stats(t, p.serverDevice).Endpoint.Addr().String(); got != "192.0.2.11" {
			t.Errorf("server looks for the client at %s", got)
		}
		if _, err := p.server.ask(p.client.serveUDP(clientTunnel+":7000"), beforeRetry); err != nil {
			t.Error(err)
		}
	})
}

// TestRenewThatIsNotNeeded: the tunnel recovers while names are resolved, and keeps its session.
func TestRenewThatIsNotNeeded(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.begin()
		before := stats(t, p.clientDevice)
		client := p.clientConfig
		client.Endpoints = []string{"server.test:51840"}
		p.clientDevice.cfg = client
		ctx, end := context.WithCancel(t.Context())
		p.clientDevice.endpoints.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			end()
			return nil, errors.New("no such host")
		}
		if err := p.clientDevice.Renew(ctx, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("renewed, error %v", err)
		}
		if now := stats(t, p.clientDevice); now.Session.Since != before.Session.Since || now.ListenPort != before.ListenPort {
			t.Errorf("before %+v, now %+v", before, now)
		}
	})
}

// TestRenewReportsALostPeer: the next Apply reports a change if a renewal has added a peer that was deleted, because
// foreign changes are counted.
func TestRenewReportsALostPeer(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		require.NoError(t, p.clientDevice.engine.configure(wgtypes.Config{ReplacePeers: true}))
		p.client.renew(p.clientDevice)
		for _, want := range []bool{true, false} {
			if changed := p.client.apply(p.clientDevice, p.clientConfig); changed != want {
				t.Errorf("changed: %t, want %t", changed, want)
			}
		}
	})
}

// TestClosed: a closed device has no peer, also after a renewal, and works as before when it is opened again.
func TestClosed(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.begin()
		at := stats(t, p.clientDevice).Endpoint
		closed := p.clientConfig
		closed.Closed = true
		p.client.apply(p.clientDevice, closed)
		p.client.renew(p.clientDevice)
		p.client.Inside(func() error { return errors.Join(p.clientDevice.RenewAt(at), p.clientDevice.MoveTo(at)) })
		if have, err := p.clientDevice.engine.read(); err != nil || len(have.Peers) != 0 {
			t.Errorf("closed, and has peers %v, %v", have.Peers, err)
		}
		if p.client.apply(p.clientDevice, closed) || stats(t, p.clientDevice).Changed {
			t.Error("closed twice")
		}
		p.client.apply(p.clientDevice, p.clientConfig)
		p.client.mustAsk(target)
		settle(t, p.clientDevice)
		p.client.Inside(func() error { return p.clientDevice.RenewAt(at) })
		p.client.mustAsk(target)
		if got := stats(t, p.clientDevice).Endpoint; got != at {
			t.Errorf("renewed at %v, want %v", got, at)
		}
	})
}

// TestMoveKeepsTheSession: packets after a move arrive at the other endpoint, without another handshake.
func TestMoveKeepsTheSession(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.begin()
		before := stats(t, p.clientDevice)
		p.server.IP("addr del 192.0.2.1/24 dev wire")
		p.server.IP("addr add 192.0.2.2/24 dev wire")
		to := netip.MustParseAddrPort("192.0.2.2:51840")
		require.NoError(t, p.clientDevice.MoveTo(to))
		p.client.mustAsk(target)
		if now := stats(t, p.clientDevice); now.Endpoint != to || !now.Session.Since.Equal(before.Session.Since) {
			t.Errorf("before %+v, now %+v", before, now)
		}
		if p.client.apply(p.clientDevice, p.clientConfig) {
			t.Error("after a move, the same configuration changed something")
		}
	})
}

// TestRenewLeavesWhereItIs: after packets of the peer have reverted a move, a renewal tries another endpoint than the
// one in use.
func TestRenewLeavesWhereItIs(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.server.serveUDP(serverTunnel + ":7000")
		client := p.clientConfig
		client.Endpoints = []string{"192.0.2.1:51840", "192.0.2.2:51840"}
		p.client.apply(p.clientDevice, client)
		p.client.mustAsk(target)
		require.NoError(t, p.clientDevice.MoveTo(netip.MustParseAddrPort("192.0.2.2:51840")))
		p.server.mustAsk(p.client.serveUDP(clientTunnel + ":7000"))
		p.client.renew(p.clientDevice)
		if got := stats(t, p.clientDevice).Endpoint.String(); got != "192.0.2.2:51840" {
			t.Errorf("renewed at %s", got)
		}
	})
}
