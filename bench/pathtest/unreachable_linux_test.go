package pathtest

import (
	"fmt"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// retriesSeen is the number of attempts to reach the API server before a test continues: the helper's start is complete
// by then.
const retriesSeen = 4

// TestNodeWithoutAPIServer restarts a node's helper while its API server is away. It changes nothing in the kernel, so
// packets continue, and is alive for the kubelet, but not ready. When the API server is back, it applies the records
// again.
func TestNodeWithoutAPIServer(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	a, b, _ := twoClusters(t)
	socket, cut := a.serveAPI()
	a.sockets[1] = socket
	connectBoth(k, a, b)
	servePods(t, b)
	cut()
	a.nodeHelpers[1].Kill()
	before := kernelOf(a.nodes[1])
	a.startNode(1)
	wait.Succeeds(t, joining, func() error {
		if n := a.nodeHelpers[1].Logged("it is tried again"); n < retriesSeen {
			return fmt.Errorf("the helper has looked for its API server %d times", n)
		}
		return nil
	})
	if after := kernelOf(a.nodes[1]); after != before {
		t.Errorf("the kernel has\n%s\nand had\n%s", after, before)
	}
	if _, err := process.Ask(a.nodes[1].Handle, "/livez"); err != nil {
		t.Errorf("the kubelet restarts it: %v", err)
	}
	if _, err := process.Ask(a.nodes[1].Handle, "/readyz"); err == nil {
		t.Error("it is ready")
	}
	for i := range nodesPerCluster {
		if _, err := seenBy(a.pods[1], b.remappedPod(i)); err != nil {
			t.Error(err)
		}
	}
	a.serveAPIAt(socket)
	awaitReady(t, a.nodes[1])
	expectAll(a, b)
	a.awaitMTU(k, b, pathMTU-10)
}

// kernelOf returns the complete liqonet state of a node's kernel.
func kernelOf(ns netns.Namespace) string {
	return pathIn(ns) + ns.Run("sh", "-c", "ip -br addr show; nft -s list table ip "+netops.Table+"; nft -s list ruleset ip6")
}
