//go:build linux && virtualtime

package tunnel

import (
	"testing"
	"time"
)

// The tests of this file wait for minutes on WireGuard's own timers. They are for a guest's virtual time:
//
//	lab guest test --virtual-time --run Timers ./netops/tunnel

// WireGuard's constants (whitepaper, section 6.1), and what it sends.
const (
	rekeyAfter     = 120 * time.Second
	keepAliveBytes = 32 // message header 16 + authentication tag 16
)

// TestTimersRekey keeps a tunnel busy for six minutes: every two of them it has another session, and no datagram
// is lost at the change.
func TestTimersRekey(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.server.serveUDP(serverTunnel + ":7000")
		p.client.mustAsk(target)
		last := stats(t, p.clientDevice).LastHandshake
		sessions := 0
		each(6*time.Minute, time.Second, func() {
			if _, err := p.client.ask(target, 50*time.Millisecond); err != nil {
				t.Fatalf("%v after the handshake: %v", time.Since(last), err)
			}
			now := stats(t, p.clientDevice).LastHandshake
			if now.Equal(last) {
				return
			}
			// The datagram that finds the session too old, up to a second after that, begins the next one. Handshakes
			// are told by another clock than that by which they age, some hundred nanoseconds apart.
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

// TestTimersKeepAlive leaves a tunnel alone: the client is heard every 25 seconds, so that translations on the
// way stay open, or not at all where that is not asked for.
func TestTimersKeepAlive(t *testing.T) {
	for _, interval := range []time.Duration{25 * time.Second, 0} {
		t.Run(interval.String(), func(t *testing.T) {
			forEachImplementation(t, func(t *testing.T, p *pair) {
				client := p.clientConfig
				client.Peer.KeepAlive = interval
				p.client.apply(p.clientDevice, client)
				p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
				// An answer that nothing follows is acknowledged after 10 s, whatever is asked for.
				each(15*time.Second, time.Second, func() {})
				begin := stats(t, p.serverDevice).RxBytes
				const intervals = 4 // a rekey is not due yet
				each(intervals*25*time.Second, time.Second, func() {})
				heard := stats(t, p.serverDevice).RxBytes - begin
				want := int64(intervals * keepAliveBytes)
				if interval == 0 {
					want = 0
				}
				if heard != want {
					t.Errorf("the server heard %d bytes, want %d", heard, want)
				}
			})
		})
	}
}

// TestTimersSilentServer lets a server come back, with the same key, after a minute in which it was gone: the
// client finds it without help.
func TestTimersSilentServer(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
		if err := p.serverDevice.Remove(); err != nil {
			t.Fatal(err)
		}
		each(time.Minute, time.Second, func() {})
		p.serverDevice = open(p.server, p.serverConfig)
		// A session is given up 15 s after a datagram without an answer, and a handshake tried again every 5 s.
		took, err := p.client.ask(p.server.serveUDP(serverTunnel+":7001"), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
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
