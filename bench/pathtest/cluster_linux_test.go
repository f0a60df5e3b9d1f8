// Package pathtest runs the helpers as processes in the nodes and gateways of two clusters made of network namespaces,
// and sends packets through them. The API servers are fakes, and the test writes the records of the CLI.
package pathtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
)

// nodesPerCluster is the number of nodes of a cluster, each with a pod. The first one has the pod of a gateway.
const nodesPerCluster = 2

// joining is the timeout of waits whose duration is not tested.
const joining = clusters.Joining

// testCluster is a cluster of a test.
type testCluster struct {
	*clusters.Cluster
	t *testing.T
}

// combinations returns the kinds that the kernel under test supports; the first alone for a short test, as in a slow
// guest.
func combinations() []clusters.Kinds {
	all := clusters.TestedKinds()
	if testing.Short() {
		return all[:1]
	}
	return all
}

// withPlain adds tunnels without encryption.
func withPlain(all []clusters.Kinds) []clusters.Kinds {
	plain := all[0]
	plain.WireGuard, plain.Transport = records.Unencrypted, records.UDP
	if slices.Contains(all, plain) {
		return all
	}
	return append(all, plain)
}

// twoClusters returns clusters that are not connected yet, and the underlay that they share.
func twoClusters(t *testing.T) (a, b *testCluster, underlay netns.Namespace) {
	return clustersOf(t, combinations()[0])
}

// udpClusters is twoClusters for a test of what only UDP has.
func udpClusters(t *testing.T) (a, b *testCluster, underlay netns.Namespace) {
	k := combinations()[0]
	k.Transport = records.UDP
	return clustersOf(t, k)
}

func clustersOf(t *testing.T, k clusters.Kinds) (a, b *testCluster, underlay netns.Namespace) {
	underlay = netns.New(t)
	underlay.IP("link add br0 type bridge", "link set br0 up", fmt.Sprintf("addr add %s/16 dev br0", clusters.Outside))
	a = &testCluster{clusters.New(t, 1, nodesPerCluster, "10.11.0.0/16", underlay, k), t}
	return a, &testCluster{clusters.New(t, 2, nodesPerCluster, "10.12.0.0/16", underlay, k), t}, underlay
}

// connectBoth connects two clusters, and waits until their nodes have verified their paths.
func connectBoth(a, b *testCluster) {
	a.t.Helper()
	a.Connect(b.Cluster)
	b.Connect(a.Cluster)
	a.AwaitProof()
	b.AwaitProof()
}

// connected returns two clusters that are connected.
func connected(t *testing.T) (a, b *testCluster) {
	t.Helper()
	a, b, _ = twoClusters(t)
	connectBoth(a, b)
	return a, b
}

// startGateway starts the helper of the first gateway.
func (c *testCluster) startGateway() { c.Start(c.Gateways[0]) }

// status returns the report of the first gateway.
func (c *testCluster) status() (records.Status, error) { return c.StatusOf(c.Gateways[0]) }

// job is what the test binary does when it runs as a process.
type job struct {
	clusters.Helper

	Question *probe.Question // of network trace, instead of a helper's work

	Spoiled string // kind of objects that crash a process which decodes them; "": none
	Never   bool   // instead, their list does not arrive
}

func TestMain(m *testing.M) {
	process.Main(runJob)
	watch.DefaultChanSize = 1000 // a watch of the fake API server begins with all objects of a kind
	os.Exit(m.Run())
}

func runJob(ctx context.Context, j job) error {
	if j.Question != nil {
		return j.Question.Run(ctx, os.Stdin, os.Stdout)
	}
	return j.Run(ctx, func(c kubernetes.Interface) kubernetes.Interface {
		if j.Spoiled == "" {
			return c
		}
		return spoiled{c, j.Spoiled, j.Never}
	})
}
