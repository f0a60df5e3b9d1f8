//go:build linux

package gateway

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// TestOneRenewal checks that while names do not resolve, there is one renewal of a tunnel, for any time, and that it
// ends with the first answer. The next silence starts another one.
func TestOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, ended := 0, 0
		g, _ := testEchoes(testView())
		e := g.tunnel(1)
		e.device = &farTunnel{renew: func(ctx context.Context) error { begun++; <-ctx.Done(); ended++; return ctx.Err() }}
		locked := func(f func(time.Time)) { g.mu.Lock(); defer g.mu.Unlock(); f(time.Now()) }
		for round := 1; round <= 2; round++ {
			locked(e.renewal.answered)
			synctest.Wait()
			for range 600 {
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest's clock
				locked(e.renewIfDue)
			}
			synctest.Wait()
			if begun != round || ended != round-1 {
				t.Fatalf("%d renewals have begun and %d ended, want %d and %d", begun, ended, round, round-1)
			}
		}
		locked(e.renewal.answered)
		synctest.Wait()
	})
}

// TestFirstSession checks that a client that has received nothing renews its tunnel soon, as the server may start
// later, and that an echo follows each renewal immediately. A server, which has no endpoint, has nothing to renew so
// soon.
func TestFirstSession(t *testing.T) {
	for _, role := range []records.Role{records.Client, records.Server} {
		v := testView()
		v.peering.Role = role
		g, _ := testEchoes(v)
		socket, err := echo.Listen(echo.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
		require.NoError(t, err)
		defer func() { _ = socket.Close() }()
		e, silent := g.tunnel(1), netip.MustParseAddrPort("127.0.0.1:9")
		require.NoError(t, e.ask(socket, silent))
		asked := time.Now()
		e.use(&farTunnel{renew: func(context.Context) error { return nil }}, false)
		sent := func(p *echo.Prober) uint64 { return p.Stats().Sent }
		g.mu.Lock()
		// Of the first one only the request that a renewal causes counts.
		e.peer.Stop()
		e.peer, err = socket.Probe(echo.ProbeConfig{Target: silent, Interval: time.Hour})
		p := e.peer
		g.mu.Unlock()
		require.NoError(t, err)
		wait.Until(t, "the first request", wait.Timeout, func() bool { return sent(p) == 1 })
		due := func(after time.Duration) {
			g.mu.Lock()
			defer g.mu.Unlock()
			e.renewIfDue(asked.Add(after))
		}
		due(membership.FirstPause)
		want := uint64(2)
		if role == records.Server {
			want = 1
			due(membership.FirstPause)
		}
		wait.Until(t, "a request after the renewal of a "+string(role), wait.Timeout, func() bool { return sent(p) == want })
		g.mu.Lock()
		if renewed := e.renewal.cancel != nil; role == records.Server && renewed {
			t.Error("a server renews a tunnel that has never had a session")
		}
		g.mu.Unlock()
	}
}
