package pathtest

import (
	"fmt"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// Sizes of the narrow hops below, in bytes.
const (
	narrowUnderlay = 1453
	narrowOverlay  = 1411
)

// TestPathSizes has helpers measure paths with hops whose MTU is smaller than that of every link: between the gateways,
// and from the second node of a cluster to its gateway on the first.
func TestPathSizes(t *testing.T) {
	t.Parallel()
	for name, reported := range map[string]bool{"reported": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, underlay := udpClusters(t)
			route(a, b, underlay)
			if !reported {
				underlay.Run("nft", "table ip hush { chain out { type filter hook output priority 0; icmp type destination-unreachable drop; }; }")
			}
			a.Connect(b.Cluster)
			b.Connect(a.Cluster)
			a.awaitSizes(narrowUnderlay, clusters.LinkMTU, clusters.LinkMTU)
			b.awaitSizes(narrowUnderlay, clusters.LinkMTU, narrowOverlay)
			if reported { // in one case only: it takes half a minute
				narrow(underlay, narrowUnderlay-100, a, b)
				a.awaitSizes(narrowUnderlay-100, clusters.LinkMTU, clusters.LinkMTU)
			}
		})
	}
}

// route makes the underlay a router with narrow hops.
func route(a, b *testCluster, underlay netns.Namespace) {
	underlay.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.br0.send_redirects=0")
	for _, c := range []*testCluster{a, b} {
		peer := map[*testCluster]*testCluster{a: b, b: a}[c]
		for _, n := range c.Nodes {
			for j := range peer.Nodes {
				n.IP(fmt.Sprintf("route add %s via %s", peer.NodeAddress(j), clusters.Outside))
			}
		}
	}
	narrow(underlay, narrowUnderlay, a, b)
	// The server's cluster is entered at the second node, and its gateway runs on the first.
	underlay.IP(fmt.Sprintf("route add %s via %s dev br0 mtu lock %d", b.PodsOf(0), b.NodeAddress(0), narrowOverlay))
	b.Nodes[1].IP(fmt.Sprintf("route replace %s via %s", b.PodsOf(0), clusters.Outside))
}

// narrow limits the packets of the router to any node to that MTU.
func narrow(underlay netns.Namespace, mtu int, clusters ...*testCluster) {
	for _, c := range clusters {
		for i := range c.Nodes {
			underlay.IP(fmt.Sprintf("route replace %s dev br0 mtu lock %d", c.NodeAddress(i), mtu))
		}
	}
}

// awaitSizes waits until the gateway reports the path MTUs: to the peer, and to all its nodes.
func (c *testCluster) awaitSizes(between int, ofNodes ...int) {
	c.t.Helper()
	c.AwaitStatus(c.Gateways[0], func(s records.Status) error {
		if want := (records.PathSize{Asked: true, MTU: between}); s.Path != want {
			return fmt.Errorf("path between the gateways %+v, want %+v", s.Path, want)
		}
		for i, n := range s.Nodes {
			if want := (records.PathSize{Asked: true, MTU: ofNodes[i]}); n.Path != want {
				return fmt.Errorf("path of node %s to its gateway %+v, want %+v", n.Name, n.Path, want)
			}
		}
		if len(s.Nodes) != len(ofNodes) {
			return fmt.Errorf("%d nodes, want %d", len(s.Nodes), len(ofNodes))
		}
		return nil
	})
}
