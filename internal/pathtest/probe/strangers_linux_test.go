package probe

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestIdleConnections checks that hundreds of idle connections, which are reopened when closed, do not block a client
// with the token.
func TestIdleConnections(t *testing.T) {
	const conns = 5 * meterConns
	for name, test := range map[string]struct {
		serve func(ctx context.Context, token string, at netip.AddrPort) error
		ask   func(ctx context.Context, token string, at netip.AddrPort) error
	}{
		"server": {
			func(ctx context.Context, token string, at netip.AddrPort) error {
				return Server{"n", token}.Serve(ctx, at)
			},
			func(ctx context.Context, token string, at netip.AddrPort) error {
				_, err := Target{Name: "n", Node: "n", Address: at, Token: token}.askTCP(ctx)
				return err
			},
		},
		"meter": {
			func(ctx context.Context, token string, at netip.AddrPort) error { return Meter{token}.Serve(ctx, at) },
			func(ctx context.Context, token string, at netip.AddrPort) error {
				return retry(ctx, func(ctx context.Context) error { return Measurement{Meter: at, Token: token}.connect(ctx, modeClose) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := rand.Text()
			at := untilEnd(t, func(ctx context.Context, at netip.AddrPort) error { return test.serve(ctx, token, at) })
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			defer group.Wait()
			defer cancel()
			require.NoError(t, test.ask(ctx, token, at))
			var first sync.WaitGroup
			for range conns {
				first.Add(1)
				group.Go(func() { holdOpen(ctx, at, sync.OnceFunc(first.Done)) })
			}
			first.Wait()
			begin := time.Now()
			err := test.ask(ctx, token, at)
			t.Logf("after %s: %v", time.Since(begin).Round(time.Millisecond), err)
			assert.NoError(t, err)
		})
	}
}

// holdOpen opens a connection, and reopens it when it is closed.
func holdOpen(ctx context.Context, at netip.AddrPort, opened func()) {
	defer opened()
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", at.String())
		if err != nil {
			return
		}
		opened()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		_, _ = io.Copy(io.Discard, conn)
		stop()
		conn.Close()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}
