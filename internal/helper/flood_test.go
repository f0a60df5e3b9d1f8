//go:build linux

package helper

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

const (
	floodTime = 2 * time.Second
	// floodTimes is how often it is measured at most: other work on the machine's cores makes instructions dearer.
	floodTimes = 6
	// floodShare is the share of a core that a helper may take while it is flooded: half of what 27,000 messages a
	// second, floodRate, cost one that read each. A slower machine sends fewer, and pays more for each.
	floodShare    = 0.15
	floodRate     = 27000.0
	ignoredEchoes = "liqonet_echo_ignored_total"
	discard       = 9 // a port at which nobody listens (RFC 863)
)

// TestFlood sends a node's helper, and then a gateway's, as fast as one sender can, echoes and what is none: the kernel
// drops most, each that is ignored is counted, and the helper has hardly anything to do.
func TestFlood(t *testing.T) {
	server, client := twoClusters(t)
	messages := floodOf(t)
	t.Run("node", func(t *testing.T) {
		_, node := client.written.get()
		target := netip.AddrPortFrom(node.Internal, netops.EchoPort)
		flood(t, client.gateway, target, 1, [][]byte{make([]byte, 60000)})
		cheap(t, func() (share, base float64) {
			return flooded(t, client.nodeHelper, dropsOf("echo-"+testPeering().Name), client.gateway, target, messages), 0
		})
		if n := client.nodeHelper.counter(ignoredEchoes); n == 0 {
			t.Error("no message is counted as ignored")
		}
		crosses(t, server, client)
	})
	t.Run("gateway", func(t *testing.T) {
		end := testPeering().Gateways[0].Tunnels[0].Address.Addr() // the client's
		// A tunnel in userspace has the helper decrypt all that comes, whatever it is: so much is the tunnel's.
		cheap(t, func() (share, base float64) {
			base = flooded(t, client.gatewayHelper, dropsOf("input"), server.gateway, netip.AddrPortFrom(end, discard), messages)
			return flooded(t, client.gatewayHelper, dropsOf("echo"), server.gateway, netip.AddrPortFrom(end, netops.EchoPort), messages), base
		})
		crosses(t, server, client)
	})
}

// dropsOf is the counter of what a chain dropped.
func dropsOf(chain string) string {
	return fmt.Sprintf("liqonet_dropped_packets_total{chain=%q}", chain)
}

// floodOf are messages that a peer may send: echoes and what is none.
func floodOf(t *testing.T) [][]byte {
	t.Helper()
	request, err := echo.Message{Kind: echo.Request, Size: 100}.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := echo.Message{Kind: echo.Reply, Size: 100}.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{request, reply, append([]byte("not an echo"), request...), request[:20], {}}
}

// cheap measures until the share of a core that a helper takes while it is flooded, of a core that sends floodRate, is
// small beyond what it would take anyway.
func cheap(t *testing.T, measure func() (share, base float64)) {
	t.Helper()
	atMost := floodShare
	if testing.Short() {
		atMost *= 2 // in a guest every system call takes longer
	}
	least := 1.0
	for range floodTimes {
		share, base := measure()
		if least = min(least, share-base); least <= atMost {
			return
		}
	}
	t.Errorf("the helper took %.1f %% of a core, want at most %.0f %%", 100*least, 100*atMost)
}

// flooded floods a helper and returns the share of a core that it takes. The kernel must drop some of it.
func flooded(t *testing.T, helper *process, chain string, from netns.Namespace, target netip.AddrPort, messages [][]byte) float64 {
	t.Helper()
	before, dropped, begin := helper.used(), helper.counter(chain), time.Now()
	sent := flood(t, from, target, floodTime, messages)
	took := time.Since(begin)
	rate := float64(sent) / took.Seconds()
	share := float64(helper.used()-before) / float64(took) * min(1, rate/floodRate)
	n := helper.counter(chain) - dropped
	t.Logf("to port %d: %.0f messages a second, %.0f of %d dropped: %.1f %% of a core", target.Port(), rate, n, sent, 100*share)
	if n == 0 {
		t.Errorf("of %d messages none was dropped in the kernel", sent)
	}
	return share
}

// flood sends messages in turn from a namespace and returns how many.
func flood(t *testing.T, from netns.Namespace, to netip.AddrPort, during time.Duration, messages [][]byte) (sent int) {
	t.Helper()
	if err := from.Do(func() error {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "udp4", to.String())
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		for end := time.Now().Add(during); sent == 0 || time.Now().Before(end); {
			for _, m := range messages {
				_, _ = c.Write(m) // a full buffer is as good
				sent++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return sent
}
