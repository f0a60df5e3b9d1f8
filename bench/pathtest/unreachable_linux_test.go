package pathtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
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
	a, b, _ := twoClusters(t)
	socket, cut := a.ServeAPI()
	a.Sockets[1] = socket
	connectBoth(a, b)
	servePods(t, b)
	cut()
	a.NodeHelpers[1].Kill()
	before := kernelOf(a.Nodes[1])
	a.StartNode(1)
	wait.Succeeds(t, joining, func() error {
		if n := a.NodeHelpers[1].Logged("it is tried again"); n < retriesSeen {
			return fmt.Errorf("the helper has looked for its API server %d times", n)
		}
		return nil
	})
	if after := kernelOf(a.Nodes[1]); after != before {
		t.Errorf("the kernel has\n%s\nand had\n%s", after, before)
	}
	if _, err := process.Ask(a.Nodes[1].Handle, "/livez"); err != nil {
		t.Errorf("the kubelet restarts it: %v", err)
	}
	if _, err := process.Ask(a.Nodes[1].Handle, "/readyz"); err == nil {
		t.Error("it is ready")
	}
	for i := range nodesPerCluster {
		if _, err := seenBy(a.Pods[1], b.RemappedPod(i)); err != nil {
			t.Error(err)
		}
	}
	a.ServeAPIAt(socket)
	awaitReady(t, a.Nodes[1])
	expectAll(a, b)
	a.awaitMTU(b, clusters.PathMTU-10)
}

// kernelOf returns the complete liqonet state of a node's kernel, without what packets add to it: the senders whose
// rate is limited.
func kernelOf(ns netns.Namespace) string {
	all := pathIn(ns) + ns.Run("sh", "-c", "ip -br addr show; nft -s list table ip "+netops.Table+"; nft -s list ruleset ip6")
	return limitedSenders.ReplaceAllString(all, "")
}

// limitedSenders matches the elements of a set that nftables adds for packets, each with a limit of its own.
var limitedSenders = regexp.MustCompile(`\s*elements = \{[^}]*limit rate[^}]*\}`)

// TestUnreachableGateway checks that a node without a route to one peering's gateway serves the others, and reports the
// error.
func TestUnreachableGateway(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	lost := a.peerWithMany(b, 0, false)
	a.Nodes[1].IP("route add unreachable " + lost.Address().String())
	a.NodeHelpers[1].Kill()
	a.resetNode(1)
	a.StartNode(1)
	wait.Succeeds(t, joining, func() error {
		reports, err := a.Reports()
		got := reports[a.NodeName(1)]
		_, reached := got.OverlaySources[lost.ID()]
		if err == nil && (!slices.Equal(got.Peerings, []string{lost.Peering, "peer"}) || !got.OverlaySources[a.Gateways[0].ID()].IsValid() || reached) {
			err = fmt.Errorf("report %+v: want both peerings, and the path to the gateway of one", got)
		}
		return err
	})
	ready := func() error { _, err := process.Ask(a.Nodes[1].Handle, "/readyz"); return err }
	wait.Until(t, "an answer", joining, func() bool { err := ready(); return err == nil || errors.Is(err, process.ErrUnavailable) })
	if err := ready(); !errors.Is(err, process.ErrUnavailable) {
		t.Errorf("the helper has no route to a gateway: ready %v", err)
	}
}

// TestReadinessOfAGateway checks that a gateway is not ready before it serves its peering, and that its status, not its
// readiness, shows a record that is damaged later.
func TestReadinessOfAGateway(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	g := a.Gateways[0]
	a.WriteFabric()
	a.WriteObjects(g)
	a.startGateway()
	ready := func() error { _, err := process.Ask(g.Handle, "/readyz"); return err }
	wait.Until(t, "an answer", joining, func() bool { err := ready(); return err == nil || errors.Is(err, process.ErrUnavailable) })
	wait.Until(t, "a pass without the peering's record", joining, func() bool { return counter(t, g.Namespace, "liqonet_records_refused") == 1 })
	if err := ready(); !errors.Is(err, process.ErrUnavailable) {
		t.Errorf("before there is a record of its peering: %v", err)
	}
	a.Write(records.PeeringName("peer"), a.Record(b.Cluster))
	wait.Succeeds(t, joining, ready)
	a.Damage(records.PeeringName("peer"))
	wait.Until(t, "the fault in the status", joining, func() bool {
		s, err := a.status()
		const earlier = "not written yet" // of the first passes
		return err == nil && len(s.Failed) == 1 && !strings.Contains(s.Failed[0], earlier)
	})
	if err := ready(); err != nil {
		t.Errorf("one damaged record, and the gateway is not ready: %v", err)
	}
}
