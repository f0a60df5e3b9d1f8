package kernel

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestFlushedTable opens connections while another program has flushed a node's table: the network plugin translates
// them to its own address, and the gateway drops their packets. Once the table and the sources are restored,
// retransmissions cross. Older connections are not interrupted.
func TestFlushedTable(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		n, to := a.nodes[1], at(b.seenPod(0))
		dial := func(network string) net.Conn {
			c, err := n.pod.Dial(t.Context(), network, to)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		crosses := func(what string, c net.Conn) {
			t.Helper()
			if got, err := question(c, "?", answerWait); err != nil {
				t.Errorf("%s: %q (%v)", what, got, err)
			}
		}
		older := dial("tcp4")
		crosses("before", older)
		want := netops.NodeState(n.config)
		if netops.SourcesDiffer(observe(t, n.kernel).Firewall, want.Firewall) {
			t.Error("sources are missing before")
		}

		n.Run("nft", "flush", "table", "ip", netops.Table)
		if !netops.SourcesDiffer(observe(t, n.kernel).Firewall, want.Firewall) {
			t.Error("sources are not missing without rules")
		}
		accepted := dial("tcp4")
		crosses("from the node's address in its pod CIDR", accepted)
		// By masquerading, the kernel selects an address of the first device: on most nodes that of the uplink.
		n.Chain("plugin", "post", "nat hook postrouting priority 89", fmt.Sprintf("ip saddr %s oifname lqn-gw* snat to %s", a.podCIDR(1), a.node(1)))
		datagrams := dial("udp4")
		if got, answered := answerOf(t, datagrams, n.namespace); answered {
			t.Fatalf("without the table: %q, want no answer to a packet with another source", got)
		}
		stream := make(chan net.Conn, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), answerWait)
			defer cancel()
			c, err := n.pod.Dial(ctx, "tcp4", to)
			if err != nil {
				t.Errorf("stream: %v", err)
			}
			stream <- c
		}()
		handle, err := n.kernel.open(unix.NETLINK_NETFILTER)
		require.NoError(t, err)
		defer handle.Close()
		wait.Until(t, "tracked connections of the pod: three streams and datagrams", answerWait, func() bool {
			flows, err := handle.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
			require.NoError(t, err)
			count := 0
			for _, f := range flows {
				if f.Forward.SrcIP.String() == a.pod(1).String() && f.Forward.DstIP.String() == to.Addr().String() {
					count++
				}
			}
			return count == 4
		})

		reach(t, n.kernel, want)
		require.NoError(t, n.kernel.FlushWrongSources(Sources{Peers: n.config.PeerCIDRs(), Pods: n.config.Pods, Node: n.config.Internal}))
		crosses("datagrams", datagrams)
		crosses("older stream", older)
		crosses("answered stream", accepted)
		if c := <-stream; c != nil {
			t.Cleanup(func() { _ = c.Close() })
			crosses("stream", c)
		}
	})
}
