package e2e

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// testFailsClosed removes liqonet's links from a node of each cluster while its helper is stopped: what the node's pods
// then send to the peer must not leave the node, whether or not packets of pods pass the node's nftables.
func testFailsClosed(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec, conn connection) {
	t.Helper()
	// The nodes share their process identifiers.
	const signalHelper = `own=$(readlink /proc/self/ns/net)
for p in /proc/[0-9]*; do
	[ "$(readlink $p/ns/net)" = "$own" ] || continue
	case "$(tr '\0' ' ' < $p/cmdline 2>/dev/null)" in "/liqoctl helper node"*) kill -$1 ${p#/proc/} && n=1;; esac
done; [ "$n" = 1 ]`
	const removeLinks = `all=$(ip -o link | grep -o 'lqn-[^:@ ]*' | sort -u); [ "$all" ] && for n in $all; do ip link del $n; done`
	status, err := l.Status(ctx)
	require.NoError(t, err)
	for i, s := range sides(conn) {
		node := nodesOf(ctx, t, l, s.cluster)[0]
		sender := podOn(ctx, t, l, s.cluster, node)
		target := s.self.seen(t, podOn(ctx, t, l, s.other, nodesOf(ctx, t, l, s.other)[0]).IP)
		run := func(script string, args ...string) {
			if out, err := l.NodeExec(ctx, node, append([]string{"sh", "-c", script, "sh"}, args...)...); err != nil {
				t.Fatalf("%s: %v\n%s", node, err, out)
			}
		}
		var inTheClear, outside atomic.Int64
		c, err := capture.Start(status.Places["router"].Net, []string{linkOf(declared.Clusters[i])}, func(p capture.Packet) {
			switch {
			case !bytes.Contains(p.Frame, []byte(podPayload)):
			case slices.Contains(spec.OutsideHosts(), p.Target):
				outside.Add(1)
			default:
				inTheClear.Add(1)
			}
		})
		require.NoError(t, err)
		run(signalHelper, "STOP")
		run(removeLinks)
		inPod(ctx, t, l, s.cluster, sender, "send", "-rounds", "10", podPayload, target+":7")
		// The capture sees what a pod sends elsewhere, and would have seen the packets before.
		await(ctx, t, func() bool {
			inPod(ctx, t, l, s.cluster, sender, "send", "-rounds", "1", podPayload, spec.OutsideHosts()[0].String()+":7")
			return outside.Load() > 0
		}, func() string { return "the capture sees nothing of what pods of " + s.cluster + " send outside" })
		// On a slow machine the kubelet has replaced the helper by now.
		_, _ = l.NodeExec(ctx, node, "sh", "-c", signalHelper, "sh", "CONT")
		if _, err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := inTheClear.Load(); n > 0 {
			t.Errorf("node %s sent %d packets of its pod for the peer in the clear", node, n)
		}
		inPod(ctx, t, l, s.cluster, sender, "tcp", "-timeout", patience.String(), "-size", "1000", target+":7")
	}
}
