package liveness

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestBoundedListener checks that the newest connections stay open, and that closed ones make room.
func TestBoundedListener(t *testing.T) {
	const most = 3
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	l := &boundedListener{Listener: inner, limit: most}
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	open := func() (client, server net.Conn) {
		t.Helper()
		client, err := (&net.Dialer{}).DialContext(context.Background(), "tcp4", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client, <-accepted
	}
	works := func(client, server net.Conn) bool {
		if _, err := server.Write([]byte("x")); err != nil {
			return false
		}
		_, err := io.ReadFull(client, make([]byte, 1))
		return err == nil
	}
	var clients, servers []net.Conn
	for range 2 * most {
		c, s := open()
		clients, servers = append(clients, c), append(servers, s)
	}
	for i := range clients {
		if got, want := works(clients[i], servers[i]), i >= most; got != want {
			t.Errorf("connection %d of %d works: %v, want %v", i, len(clients), got, want)
		}
	}
	for range 2 * most { // each makes room for the next
		c, s := open()
		assert.NoError(t, errors.Join(s.Close(), c.Close()))
	}
	if !works(clients[2*most-1], servers[2*most-1]) {
		t.Error("the last one was closed though others had made room")
	}
}
