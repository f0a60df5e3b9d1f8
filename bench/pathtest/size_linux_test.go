package pathtest

import (
	"fmt"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
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
			k := combinations()[0]
			a, b, underlay := twoClusters(t)
			route(a, b, underlay)
			if !reported {
				underlay.Run("nft", "table ip hush { chain out { type filter hook output priority 0; icmp type destination-unreachable drop; }; }")
			}
			a.connect(k, b)
			b.connect(k, a)
			a.awaitSizes(narrowUnderlay, linkMTU, linkMTU)
			b.awaitSizes(narrowUnderlay, linkMTU, narrowOverlay)
			if reported { // in one case only: it takes half a minute
				narrow(underlay, narrowUnderlay-100, a, b)
				a.awaitSizes(narrowUnderlay-100, linkMTU, linkMTU)
			}
		})
	}
}

// route makes the underlay a router with narrow hops.
func route(a, b *testCluster, underlay netns.Namespace) {
	underlay.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.br0.send_redirects=0")
	for _, c := range []*testCluster{a, b} {
		peer := map[*testCluster]*testCluster{a: b, b: a}[c]
		for _, n := range c.nodes {
			for j := range peer.nodes {
				ip(n, fmt.Sprintf("route add %s via %s", peer.node(j), outside))
			}
		}
	}
	narrow(underlay, narrowUnderlay, a, b)
	// The server's cluster is entered at the second node, and its gateway runs on the first.
	ip(underlay, fmt.Sprintf("route add %s via %s dev br0 mtu lock %d", b.podsOf(0), b.node(0), narrowOverlay))
	ip(b.nodes[1], fmt.Sprintf("route replace %s via %s", b.podsOf(0), outside))
}

// narrow limits the packets of the router to any node to that MTU.
func narrow(underlay netns.Namespace, mtu int, clusters ...*testCluster) {
	for _, c := range clusters {
		for i := range c.nodes {
			ip(underlay, fmt.Sprintf("route replace %s dev br0 mtu lock %d", c.node(i), mtu))
		}
	}
}

// awaitSizes waits until the gateway reports the path MTUs: to the peer, and to all its nodes.
func (c *testCluster) awaitSizes(between int, ofNodes ...int) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		s, err := c.status()
		if err != nil {
			return fmt.Errorf("status of cluster %s: %w", c.name, err)
		}
		if want := (records.PathSize{Asked: true, MTU: between}); s.Path != want {
			return fmt.Errorf("cluster %s: path between the gateways %+v, want %+v", c.name, s.Path, want)
		}
		for i, n := range s.Nodes {
			if want := (records.PathSize{Asked: true, MTU: ofNodes[i]}); n.Path != want {
				return fmt.Errorf("path of node %s to its gateway %+v, want %+v", n.Name, n.Path, want)
			}
		}
		if len(s.Nodes) != len(ofNodes) {
			return fmt.Errorf("cluster %s: %d nodes, want %d", c.name, len(s.Nodes), len(ofNodes))
		}
		return nil
	})
}
