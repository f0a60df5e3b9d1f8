package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
)

// TestUnderlaySizes sends much data by TCP over links of several MTUs, with and without the MSS clamp. A packet that is
// dropped for its size would stall the connection.
func TestUnderlaySizes(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		for _, mtus := range [][2]int{{1450, 1450}, {1500, 1500}, {9000, 9000}, {9000, 1500}} {
			a, b := equalRanges().build(t, func(a, b *side) { a.mtu, b.mtu = mtus[0], mtus[1] })
			join(kind, a, b)
			for _, clamp := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d bytes, clamp %t", kind, mtus, clamp), func(t *testing.T) {
					for _, s := range []side{a, b} {
						s.gateways[0].config.ClampMSS = clamp
						s.gateways[0].follow()
					}
					for i, n := range a.nodes {
						upload(t, n.pod, at(b.seenPod(1)))
						upload(t, n.namespace, at(b.seenPod(1)))
						upload(t, b.nodes[i].pod, at(a.seenPod(1)))
						whole := fmt.Sprint(min(mtus[0], mtus[1]) - tunnelOverhead - 28) // IP 20, ICMP 8
						n.pod.Run("ping", "-q", "-c1", "-w20", "-Mdo", "-s"+whole, b.seenPod(1).String())
					}
				})
			}
		}
	}
}

// upload sends some MiB, with -short one, to a server that answers every chunk, without pauses. All but the first
// segments are as large as they can be.
func upload(t *testing.T, from namespace, to netip.AddrPort) {
	t.Helper()
	const pause = 20 * time.Second
	size := 4 << 20
	if testing.Short() {
		size = 1 << 20
	}
	c, err := from.Dial(t.Context(), "tcp4", to)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	chunk := strings.Repeat("x", 256<<10)
	for sent := 0; sent < size; sent += len(chunk) {
		if _, err := question(c, chunk, pause); err != nil {
			t.Errorf("tcp to %s: stalled after %d bytes: %v", to, sent, err)
			return
		}
	}
}

// TestNarrowHops reduces the MTU of one hop after another, unknown to the hops before it. That hop reports its MTU for
// a datagram with DF; without DF the datagram arrives.
func TestNarrowHops(t *testing.T) {
	t.Parallel()
	hops := map[string]struct {
		narrow func(a, b side)
		want   int // bytes
	}{
		"first node":   {func(a, _ side) { a.setMTU(1400) }, 1400},
		"near gateway": {func(a, _ side) { a.setMTU(1450) }, 1420},
		"far gateway": {func(_, b side) {
			b.gateways[0].config.MTU = 1300
			b.gateways[0].follow()
		}, 1300},
		"far node": {func(_, b side) {
			for _, n := range b.nodes {
				n.IP("link set cni0 mtu 1280")
			}
		}, 1280},
	}
	for _, kind := range overlays() {
		for name, hop := range hops {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				a, b := equalRanges().build(t, nil)
				join(kind, a, b)
				hop.narrow(a, b)
				for i, n := range a.nodes {
					for who, from := range map[string]namespace{"pod": n.pod, "node": n.namespace} {
						for j := range b.nodes {
							to := at(b.seenPod(j))
							c := datagrams(t, from, to, unix.IP_PMTUDISC_DO)
							if got := pathMTU(t, c); got != hop.want {
								t.Errorf("from %s %d to pod %d: path MTU %d, want %d", who, i, j, got, hop.want)
							}
							c = datagrams(t, from, to, unix.IP_PMTUDISC_DONT)
							if _, err := question(c, strings.Repeat("x", 4000), answerWait); err != nil {
								t.Errorf("from %s %d to pod %d: 4000 bytes in fragments: %v", who, i, j, err)
							}
						}
					}
				}
			})
		}
	}
}

// setMTU configures the nodes of a cluster with another path MTU than that of the tunnel.
func (s side) setMTU(mtu int) {
	for _, n := range s.nodes {
		n.config.Peers[0].MTU = mtu
		n.follow()
	}
}

// datagrams opens a UDP socket with a mode of path MTU discovery.
func datagrams(t *testing.T, from namespace, to netip.AddrPort, discovery int) *net.UDPConn {
	t.Helper()
	conn, err := from.Dial(t.Context(), "udp4", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := conn.(*net.UDPConn)
	control(t, c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discovery) })
	return c
}

func control(t *testing.T, c *net.UDPConn, do func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, errors.Join(raw.Control(func(fd uintptr) { failed = do(int(fd)) }), failed))
}

// pathMTU sends datagrams of the kernel's current path MTU, until one arrives, and returns that size.
func pathMTU(t *testing.T, c *net.UDPConn) (mtu int) {
	t.Helper()
	const retry = time.Second
	for deadline := time.Now().Add(answerWait); time.Now().Before(deadline); {
		control(t, c, func(fd int) (err error) {
			mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
			return err
		})
		_, err := question(c, strings.Repeat("x", mtu-28), retry) // IP 20, UDP 8
		if err == nil {
			return mtu
		}
	}
	t.Errorf("udp to %s: no datagram of %d bytes arrives and no error is returned", c.RemoteAddr(), mtu)
	return mtu
}
