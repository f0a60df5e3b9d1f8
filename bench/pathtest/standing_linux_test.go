package pathtest

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// openFlow is a TCP connection from a pod to a Service whose endpoint is a pod of the peer.
type openFlow struct {
	t              *testing.T
	client, server net.Conn
}

const standingPort = 7003

// serviceAddress is translated by each node, like kube-proxy does.
var serviceAddress = netip.MustParseAddr("10.96.0.10")

// newOpenFlow opens a connection and sends both ways.
func newOpenFlow(from, to *testCluster) *openFlow {
	t := from.t
	t.Helper()
	s := &openFlow{t: t}
	from.Nodes[1].Run("nft", fmt.Sprintf("table ip service { chain pre { type nat hook prerouting priority -100; "+
		"ip daddr %s tcp dport %d dnat to %s; }; }", serviceAddress, standingPort, to.RemappedPod(0)))
	listener := to.Pods[0].For(t).Listen(fmt.Sprint(":", standingPort))
	s.client = dialIn(t, from.Pods[1], "tcp4", netip.AddrPortFrom(serviceAddress, standingPort))
	t.Cleanup(func() { _ = s.client.Close() })
	var err error
	s.server, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.server.Close() })
	s.exchange()
	return s
}

// exchange sends an unsolicited answer: a node without the connection's conntrack entry would translate it to the wrong
// address. Then it sends the other way.
func (s *openFlow) exchange() {
	s.t.Helper()
	for _, way := range []struct {
		name     string
		from, to net.Conn
	}{{"to the client", s.server, s.client}, {"to the server", s.client, s.server}} {
		said, heard := "still there", make([]byte, len("still there"))
		if _, err := io.WriteString(way.from, said); err != nil {
			s.t.Fatalf("standing connection, %s: %v", way.name, err)
		}
		require.NoError(s.t, way.to.SetReadDeadline(time.Now().Add(joining)))
		if _, err := io.ReadFull(way.to, heard); err != nil || string(heard) != said {
			s.t.Fatalf("standing connection, %s: %q (%v), want %q", way.name, heard, err, said)
		}
	}
}

// awaitReady waits until the helper in a namespace has completed a pass.
func awaitReady(t *testing.T, ns netns.Namespace) {
	t.Helper()
	wait.Succeeds(t, joining, func() error { _, err := process.Ask(ns.Handle, "/readyz"); return err })
}
