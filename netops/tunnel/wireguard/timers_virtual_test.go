//go:build linux && virtualtime

package wireguard

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// The tests in this file wait for minutes for WireGuard's own timers. They are for the virtual time of a guest:
//
//	lab guest test --virtual-time --run Timers ./netops/tunnel/wireguard

// WireGuard's constants (whitepaper, section 6.1), and message sizes.
const (
	rekeyAfter     = 120 * time.Second
	keepAliveBytes = 32 // message header 16 + authentication tag 16
)

// TestTimersRekey keeps a tunnel busy for six minutes: every two minutes it gets a new session, without losing a
// datagram.
func TestTimersRekey(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.server.serveUDP(serverTunnel + ":7000")
		p.client.mustAsk(target)
		last := stats(t, p.clientDevice).Session.Since
		sessions := 0
		each(6*time.Minute, time.Second, func() {
			if _, err := p.client.ask(target, 50*time.Millisecond); err != nil {
				t.Fatalf("%v after the handshake: %v", time.Since(last), err)
			}
			now := stats(t, p.clientDevice).Session.Since
			if now.Equal(last) {
				return
			}
			// The datagram that finds the session expired, up to a second later, starts the next one. Times of
			// handshakes are reported from another clock than that of their age, with a difference of some hundred
			// nanoseconds.
			const clocks = time.Millisecond
			if age := now.Sub(last); age < rekeyAfter-clocks || age > rekeyAfter+2*time.Second {
				t.Errorf("a session lasted %v, want %v", age, rekeyAfter)
			}
			last = now
			sessions++
		})
		if sessions < 2 {
			t.Errorf("%d new sessions in six minutes, want 2 or 3", sessions)
		}
	})
}

// TestTimersKeepAlive leaves a tunnel idle: the client sends every 25 seconds, so that NAT entries on the path are
// kept, or not at all if keepalives are disabled: its session then expires.
func TestTimersKeepAlive(t *testing.T) {
	for _, interval := range []time.Duration{25 * time.Second, 0} {
		t.Run(interval.String(), func(t *testing.T) {
			forEachImplementation(t, func(t *testing.T, p *pair) {
				client := p.clientConfig
				client.KeepAlive = interval
				p.client.apply(p.clientDevice, client)
				p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
				// A reply without further packets is acknowledged after 10 s, independent of the configuration.
				each(15*time.Second, time.Second, func() {})
				begin := stats(t, p.serverDevice).RxBytes
				const intervals = 4 // a rekey is not due yet
				each(intervals*25*time.Second, time.Second, func() {})
				received := stats(t, p.serverDevice).RxBytes - begin
				want := int64(intervals * keepAliveBytes)
				if interval == 0 {
					want = 0
				}
				if received != want {
					t.Errorf("the server received %d bytes, want %d", received, want)
				}
				each(70*time.Second, time.Second, func() {}) // more than 180 s after the handshake
				if now := stats(t, p.clientDevice).Session; now.Usable != (interval > 0) {
					t.Errorf("session of %v ago: usable: %v", time.Since(now.Since), now.Usable)
				}
			})
		})
	}
}

// TestTimersSilentServer restarts a server with the same key after a minute: the client reconnects by itself.
func TestTimersSilentServer(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
		require.NoError(t, p.serverDevice.Close(true))
		each(time.Minute, time.Second, func() {})
		p.serverDevice = open(p.server, p.serverConfig)
		// A session is given up 15 s after a datagram without a reply, and a handshake is repeated every 5 s.
		took, err := p.client.ask(p.server.serveUDP(serverTunnel+":7001"), 30*time.Second)
		require.NoError(t, err)
		t.Logf("answer %v after the server came back", took)
		if got := stats(t, p.serverDevice).Endpoint.Addr().String(); got != "192.0.2.11" {
			t.Errorf("the server sees the client at %s", got)
		}
	})
}

// each calls f at every interval for some time.
func each(long, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for end := time.Now().Add(long); time.Now().Before(end); f() {
		<-ticker.C
	}
}
