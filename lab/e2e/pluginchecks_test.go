package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
)

// testBulk sends 10 MB from every pod to every pod of the other cluster, and back.
func testBulk(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		inPod(ctx, t, l, s.cluster, from, "tcp", "-size", "10000000", target+":7")
	})
}

// testTooLong has every pod send a packet that is a byte longer than the path MTU and must not be fragmented: the sender
// gets an error, not silence.
func testTooLong(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	const headers = 20 + 8 // IP, UDP
	size := strconv.Itoa(conn.MTU - headers + 1)
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		out, err := l.Kubectl(ctx, s.cluster, "exec", from.Name, "--", "/bin/workload", "udp", "-df", "-size", size, target+":7")
		if err == nil || !strings.Contains(err.Error(), "message too long") {
			t.Errorf("%s bytes of UDP from %s to %s: %s %v, want message too long", size, from.IP, target, out, err)
		}
	})
}

// eachPair calls do with each pod of each cluster and, as it is seen there, the address of each pod of the other one.
func eachPair(ctx context.Context, t *testing.T, l *lab.Lab, conn connection, do func(s side, from pod, target string)) {
	t.Helper()
	for _, s := range sides(conn) {
		for _, from := range nodesOf(ctx, t, l, s.cluster) {
			for _, to := range nodesOf(ctx, t, l, s.other) {
				do(s, podOn(ctx, t, l, s.cluster, from), s.self.seen(t, podOn(ctx, t, l, s.other, to).IP))
			}
		}
	}
}
