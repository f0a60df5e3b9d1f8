package websocket

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestTakeOver: who is admitted with a proof of the client, as whoever ends TLS can be, gets nothing of what WireGuard
// sends, for any datagram without the keys of the session; and the client's own next connection gets it.
func TestTakeOver(t *testing.T) {
	eachImplementation(t, func(t *testing.T, client, server *gateway) {
		s := testServerTo(t, false, func(port uint16) (one datagrams, err error) {
			err = server.Do(func() (err error) {
				one, err = newServerSocket(port)
				return err
			})
			return one, err
		})
		near := &recorder{datagrams: opened(t, client.Namespace, func() (*socket, error) { return newClientSocket(listenPort) })}
		config := ClientConfig{ID: testID, Key: testKey, Addresses: at(s.url()), Seed: Key{7}}
		first := dial(config, near, quiet, func() {})
		defer func() { _ = first.Close() }()
		wait.Until(t, "a connection", patience, first.isConnected)
		client.carry(t, true)
		server.awaitClient(t, true)
		endpoint := server.stats(t).Endpoint

		other, got := testClient(t, config)
		wait.Until(t, "another connection", patience, other.isConnected)
		for name, datagrams := range map[string][][]byte{"one byte": {{0}}, "recorded": near.all()} {
			for _, one := range datagrams {
				got.out <- one
			}
			require.NoError(t, server.ping(100, patience))
			if now := server.stats(t).Endpoint; now != endpoint || got.count() > 0 {
				t.Errorf("%s: the other connection gets %d datagrams, endpoint %s, was %s", name, got.count(), now, endpoint)
			}
		}

		first.Announce(99)
		other.Announce(98)
		wait.Until(t, "both sessions of echoes", patience, func() bool { return s.Allows(99) && s.Allows(98) })

		first.link.current().close(errClosed) // the client opens another one
		wait.Until(t, "the client's packets by another connection", patience, func() bool {
			_ = client.ping(1, time.Second)
			return server.stats(t).Endpoint != endpoint
		})
		require.NoError(t, server.ping(20, patience))
		if got.count() > 0 {
			t.Errorf("the other connection gets %d datagrams", got.count())
		}
		for range 2 * connsMost {
			c, _ := testClient(t, config)
			wait.Until(t, "a connection", patience, c.isConnected)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if open := len(s.tunnels[testID].connections); open > connsMost {
			t.Errorf("%d connections are open", open)
		}
	})
}

// TestMisbehavingPeer: a peer that opens many connections, and sends junk in them or frames without end, leaves four
// connections, and nothing when they end.
func TestMisbehavingPeer(t *testing.T) {
	s := testServerTo(t, false, func(port uint16) (datagrams, error) { return newServerSocket(port) })
	used := func() (files, goroutines int) {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(open), runtime.NumGoroutine()
	}
	files, goroutines := used()
	var all []net.Conn
	for i := range 200 {
		raw, err := net.Dial("tcp4", s.url().Host)
		require.NoError(t, err)
		c := tls.Client(raw, clientTLS(Key{7}, "a", false))
		_, err = upgrade(c, bufio.NewReader(c), s.url(), newProof(testKey, testID, time.Now()))
		require.NoError(t, err)
		_, _ = c.Write([][]byte{
			nil, []byte("junk"), {opBinary, maskBit | 126, 0xff, 0, 1, 2, 3, 4}, {opBinary, maskBit, 1, 2, 3, 4, opContinuation, maskBit, 1, 2, 3, 4},
		}[i%4])
		all = append(all, raw)
	}
	wait.Until(t, "four connections", patience, func() bool {
		open, _ := used()
		return open-files <= len(all)+2*connsMost
	})
	for _, c := range all {
		_ = c.Close()
	}
	wait.Until(t, "the end of all", patience, func() bool {
		open, running := used()
		return open <= files && running <= goroutines
	})
}

// recorder keeps what WireGuard sends.
type recorder struct {
	datagrams

	mu  sync.Mutex
	got [][]byte
}

func (r *recorder) read(b []byte) (n, size int, err error) {
	n, size, err = r.datagrams.read(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	for rest := b[:n]; len(rest) > 0; {
		one := rest[:min(size, len(rest))]
		r.got, rest = append(r.got, bytes.Clone(one)), rest[len(one):]
	}
	return n, size, err
}

func (r *recorder) all() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}
