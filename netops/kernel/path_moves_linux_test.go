package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// route creates a pod with an address outside its node's range.
func (c *testCluster) route(node int, address netip.Addr) namespace {
	p := namespace{c.nodes[node].made.RoutedPod(fmt.Sprintf("cali%d", address.As4()[3]), address), c.t}
	c.nodes[1-node].IP(fmt.Sprintf("route replace %s via %s", address, c.node(node)))
	return p
}

// unroute removes such a pod.
func (c *testCluster) unroute(node int, address netip.Addr) {
	c.nodes[node].IP(fmt.Sprintf("link del cali%d", address.As4()[3]))
	c.nodes[1-node].IP(fmt.Sprintf("route del %s", address))
}

// report updates nodes and gateways for a pod that runs on a node; -1: on none.
func (c *testCluster) report(address netip.Addr, node int) {
	for i, n := range c.nodes {
		n.config.Pods = []netip.Prefix{c.podCIDR(i)}
		if i == node {
			n.config.Pods = append(n.config.Pods, cidr.Single(address))
		}
		n.follow()
		for _, g := range c.gateways {
			g.config.Nodes[i].Pods = n.config.Pods
		}
	}
	for _, g := range c.gateways {
		g.follow()
	}
}

// TestMovingPod: a pod with an address in another node's range, or in none, appears, is deleted, and appears on another
// node.
func TestMovingPod(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		for name, address := range map[string]netip.Addr{
			"of the other node's range": b.inPods(0, 77),
			"of no node's range":        netip.MustParseAddr("10.244.200.78"),
		} {
			t.Run(name, func(t *testing.T) {
				target := at(b.seen(address))
				for _, node := range []int{1, 0, 1} {
					pod := b.route(node, address)
					serve(pod, address, "moving")
					b.report(address, node)
					for i, n := range a.nodes {
						expect(t, n.pod, target, "moving", a.seenPod(i))
						expect(t, n.namespace, target, "moving", a.seenNode(i))
						expect(t, pod, at(a.seenPod(i)), fmt.Sprintf("a%d", i), b.seen(address))
					}
					b.unroute(node, address)
					b.report(address, -1)
				}
				if b.podCIDR(0).Contains(address) {
					return // the packet is routed to that node, as for any unused address of its range
				}
				// Once only: the kernel limits the rate of errors to one host.
				if got, err := ask(t, a.nodes[1].pod, "tcp4", target); !errors.Is(err, unix.EHOSTUNREACH) {
					t.Errorf("a pod that is gone: %q (%v), want no route to host", got, err)
				}
			})
		}
	})
}
