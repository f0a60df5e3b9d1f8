package kernel

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// serveElsewhere lets the router answer for the addresses by which A reaches B's pods. It receives packets that are not
// routed to the peer.
func serveElsewhere(a, b side, name string) {
	for i := range b.nodes {
		a.router.IP(fmt.Sprintf("addr add %s/32 dev lo", b.seenPod(i)))
		serve(a.router, b.seenPod(i), name)
	}
}

// TestOlderFlows opens flows to addresses before they are routed to a peer, and keeps them until they no longer are.
func TestOlderFlows(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		for _, network := range []string{"tcp4", "udp4"} {
			t.Run(fmt.Sprintf("%s/%s", kind, network), func(t *testing.T) {
				a, b := equalRanges().build(t, nil)
				serveElsewhere(a, b, "elsewhere")
				before := flows(t, a, b, network, "elsewhere")
				join(kind, a, b)
				a.forget()
				for who, c := range before {
					if network == "tcp4" {
						expectEnd(t, who, c, a.router)
					} else {
						expectMoved(t, who, c, "b")
					}
				}
				during := flows(t, a, b, network, "b")
				for _, n := range a.nodes {
					reach(t, n.kernel, netops.State{})
				}
				a.forget()
				for who, c := range during {
					// A node's socket is bound to its internal address, which was removed.
					if network == "tcp4" || strings.HasPrefix(who, "node") {
						expectEnd(t, who, c, a.router)
					} else {
						expectMoved(t, who, c, "elsewhere")
					}
				}
			})
		}
	}
}

// flows opens one flow from each pod and node of A to each pod of B, and verifies its server.
func flows(t *testing.T, a, b side, network, server string) map[string]net.Conn {
	t.Helper()
	all := map[string]net.Conn{}
	for i, n := range a.nodes {
		for kind, from := range map[string]namespace{"pod": n.pod, "node": n.namespace} {
			for j := range b.nodes {
				who := fmt.Sprintf("%s %d to pod %d", kind, i, j)
				c, err := from.Dial(t.Context(), network, at(b.seenPod(j)))
				if err != nil {
					t.Fatalf("%s: %v", who, err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if got, err := question(c, "?", answerWait); err != nil || !strings.HasPrefix(got, server) {
					t.Fatalf("%s: %q (%v), want an answer of %s", who, got, err, server)
				}
				all[who] = c
			}
		}
	}
	return all
}

// forget deletes connections as a node's helper does when ranges of peers are added or removed.
func (s side) forget() {
	for _, n := range s.nodes {
		for _, p := range n.config.Peers {
			require.NoError(s.t, n.kernel.FlushConntrack(p.CIDRs))
		}
	}
}

// expectMoved verifies that a datagram of a flow is routed to the new server.
func expectMoved(t *testing.T, who string, c net.Conn, server string) {
	t.Helper()
	if got, err := question(c, "?", answerWait); err != nil || !strings.HasPrefix(got, server) {
		t.Errorf("%s: %q (%v), want an answer of %s", who, got, err, server)
	}
}

// expectEnd verifies that a flow no longer reaches its old server, after the time that a packet takes in a namespace.
func expectEnd(t *testing.T, who string, c net.Conn, ns namespace) {
	t.Helper()
	if got, answered := answerOf(t, c, ns); answered {
		t.Errorf("%s: %q, want no answer", who, got)
	}
}
