package kernel

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// fragmentsArrive sends datagrams in fragments to a pod and returns the share of those that are answered.
func fragmentsArrive(t *testing.T, from namespace, to netip.Addr) float64 {
	t.Helper()
	const datagramsSent, every, late = 40, 20 * time.Millisecond, 2 * time.Second
	c := datagrams(t, from, at(to), unix.IP_PMTUDISC_DONT)
	answered := countAnswers(c, datagramsSent)
	for range datagramsSent {
		_, _ = c.Write([]byte(strings.Repeat("x", 4000)))
		<-time.After(every)
	}
	require.NoError(t, c.SetDeadline(time.Now().Add(late)))
	return float64(<-answered) / datagramsSent
}

// firstFragments sends first fragments without a rest, rate of them a second, until it is stopped.
func firstFragments(t *testing.T, rate int, source, target netip.Addr, send func([]byte) error) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	first, _ := pieces(source, target, 0, strings.Repeat("x", 64))
	go func() {
		defer close(ended)
		begun, sent := time.Now(), 0
		for {
			select {
			case <-end:
				t.Logf("%d first fragments a second", int(float64(sent)/time.Since(begun).Seconds()))
				return
			case <-time.After(5 * time.Millisecond):
			}
			due := int(float64(rate) * time.Since(begun).Seconds())
			for due = min(due, sent+rate/10); sent < due; sent++ { // a slow machine never catches up
				binary.BigEndian.PutUint16(first[4:], uint16(sent))
				first[10], first[11] = 0, 0
				binary.BigEndian.PutUint16(first[10:], checksum(first[:20]))
				_ = send(first)
			}
		}
	}()
	return sync.OnceFunc(func() { close(end); <-ended })
}

// fragmentMemory returns the bytes of incomplete datagrams in a namespace.
func (ns namespace) fragmentMemory() (bytes int) {
	ns.t.Helper()
	_, last, _ := strings.Cut(ns.Run("grep", "^FRAG:", "/proc/net/sockstat"), "memory ")
	_, err := fmt.Sscan(last, &bytes)
	require.NoError(ns.t, err)
	return bytes
}

// shares has a function for each path that returns the share of fragmented datagrams that arrive.
type shares map[string]func() float64

// fragmentFlood is a flood of first fragments from a link of a namespace.
type fragmentFlood struct {
	rate           int // fragments per second
	from           namespace
	link           string
	hardware       net.HardwareAddr
	source, target netip.Addr

	fills      namespace // namespace whose memory fills
	victims    shares
	bystanders shares
}

func (f fragmentFlood) run(t *testing.T) {
	f.fills.Run("sysctl", "-qw", "net.ipv4.ipfrag_time=3") // seconds; 30 by default
	send, done := f.from.emitter(f.link, f.hardware)
	defer done()
	stop := firstFragments(t, f.rate, f.source, f.target, send)
	defer stop()
	const full = 4_000_000 // of 4 MiB
	wait.Until(t, "a full memory", answerWait, func() bool { return f.fills.fragmentMemory() >= full })
	expect := func(who shares, least, most float64) {
		for name, arrive := range who {
			share := arrive()
			t.Logf("%s: %.0f %% of datagrams in fragments arrive", name, 100*share)
			if share < least || share > most {
				t.Errorf("%s: want from %.0f %% to %.0f %%", name, 100*least, 100*most)
			}
		}
	}
	expect(f.victims, 0, 0.5)
	expect(f.bystanders, leastAnswered, 1)
	stop()
	begun := time.Now()
	wait.Until(t, "an empty memory", answerWait, func() bool { return f.fills.fragmentMemory() == 0 })
	t.Logf("%.0f s after the flood the memory is empty", time.Since(begun).Seconds())
	expect(f.victims, leastAnswered, 1)
}

// TestFirstFragments floods with first fragments whose rest never comes. The kernel has 4 MiB for the fragments of a
// namespace, keeps each for 30 seconds (net/ipv4/ip_fragment.c, inet_fragment.c), and accepts no further datagram while
// they are full: four thousand fragments are enough, 136 per second. A pod fills the memory of its node, with liqonet
// and without. A pod that bypasses its node's firewall, and a peer, fill the memory of one gateway, which forwards only
// complete datagrams. Other nodes and other peerings lose nothing.
func TestFirstFragments(t *testing.T) {
	kind := overlays()[0]
	a, b, c := threeSides(t)
	way := func(from namespace, to netip.Addr) func() float64 {
		return func() float64 { return fragmentsArrive(t, from, to) }
	}
	const rate = 20_000
	byPod := func(s side, node int, to netip.Addr, victims, bystanders shares) fragmentFlood {
		n := s.nodes[node]
		return fragmentFlood{rate, n.pod, "eth0", n.hardware("cni0"), s.pod(node), to, n.namespace, victims, bystanders}
	}
	within := shares{"from its node to another": way(a.nodes[1].pod, a.pod(0))}
	t.Run("by a pod, without liqonet", byPod(a, 1, a.pod(0), within, nil).run)
	join(kind, b, a)
	join(kind, a, c)
	near, other, toB := a.nodes[0], a.nodes[1], a.gateways[0]
	t.Run("by a pod", byPod(a, 0, b.seenPod(1), shares{
		"from its node to the peer": way(near.pod, b.seenPod(1)), "from its node to another": way(near.pod, a.pod(1)),
	}, shares{
		"from another node to the peer": way(other.pod, b.seenPod(1)), "from the peer to another node": way(b.nodes[1].pod, a.seenPod(1)),
	}).run)
	thisPeer := shares{"from another node to the peer": way(near.pod, b.seenPod(1))}
	others := shares{
		"from another node to another peer": way(near.pod, c.seenPod(1)), "from another peer": way(c.nodes[1].pod, a.seenPod(1)),
		"from node to node": way(near.pod, a.pod(1)),
	}
	// So do packets of pods leave a node with eBPF host routing.
	link, hardware := netops.NodeLink(toB.config.VNI), toB.hardware(netops.Overlay)
	t.Run("by a pod, past the firewall of its node", fragmentFlood{
		rate, other.namespace, link, hardware, a.pod(1), b.seenPod(1), toB.namespace, thisPeer, others,
	}.run)
	t.Run("by a peer", fragmentFlood{rate, b.gateways[0].namespace, netops.Tunnel, nil, b.pod(1), a.pod(1), toB.namespace, thisPeer, others}.run)
}

// TestFragmentsWithoutEncryption: a tunnel without AllowedIPs brings fragments with a source outside the peer's ranges.
// They are not kept, so that they become no part of another sender's datagrams.
func TestFragmentsWithoutEncryption(t *testing.T) {
	a, b, _ := threeSides(t)
	join(overlays()[0], a, b)
	from, to := b.gateways[0], a.gateways[0]
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")}
	from.allow(everything)
	to.allow(everything)
	state, plain := netops.GatewayState(to.config), to.config
	plain.Plain = &netops.Plain{VNI: 7}
	state.Firewall = netops.GatewayState(plain).Firewall
	reach(t, to.kernel, state)
	drops := to.drops("uplink")
	own, _ := pieces(netip.MustParseAddr("192.0.2.77"), b.pod(1), 0, strings.Repeat("x", 64))
	from.emit(netops.Tunnel, nil, own)
	wait.Until(t, "the fragment is dropped", answerWait, func() bool { return to.drops("uplink") > drops })
	if bytes := to.fragmentMemory(); bytes > 0 {
		t.Errorf("%d bytes of fragments", bytes)
	}
	peers, _ := pieces(b.pod(1), a.pod(1), 0, strings.Repeat("x", 64))
	from.emit(netops.Tunnel, nil, peers)
	wait.Until(t, "a fragment of the peer arrives", answerWait, func() bool { return to.fragmentMemory() > 0 })
	expect(t, a.nodes[1].pod, at(b.seenPod(1)), "b1", a.seenPod(1))
}
