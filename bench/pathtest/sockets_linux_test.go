package pathtest

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// dialIn opens a connection from a namespace, such as one of network "udp4".
func dialIn(t *testing.T, ns netns.Namespace, network string, to netip.AddrPort) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), joining)
	defer cancel()
	conn, err := ns.Dial(ctx, network, to)
	require.NoError(t, err)
	return conn
}

// every calls a function at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
