package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// expectErrors: pods and nodes of one cluster receive ICMP errors from all hops on the path to the other. An error that
// quotes wrong addresses matches no socket.
func expectErrors(t *testing.T, a, b side) {
	for _, c := range []side{a, b} { // sends errors without a rate limit
		for _, ns := range []namespace{c.nodes[0].namespace, c.nodes[0].pod, c.nodes[1].namespace, c.nodes[1].pod, c.gateways[0].namespace} {
			ns.Run("sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
		}
	}
	absent := b.seen(numbered(b.pods[0], 0x3705)) // on no node
	const hops = 10                               // more than the path has
	for i, n := range a.nodes {
		for who, from := range map[string]namespace{"pod": n.pod, "node": n.namespace} {
			who = fmt.Sprintf("%s %d", who, i)
			expectError(t, who+", far pod", from, netip.AddrPortFrom(b.seenPod(1), servicePort+1), hops, unix.ECONNREFUSED)
			expectError(t, who+", far gateway", from, at(absent), hops, unix.EHOSTUNREACH)
		}
	}
	for name, target := range map[string]netip.Addr{"pod": b.seenPod(1), "node": b.seenNode(1)} {
		for hop := range 3 {
			who := fmt.Sprintf("time over on the way from pod to %s, at hop %d", name, hop+1)
			expectError(t, who, a.nodes[0].pod, at(target), hop+1, unix.EHOSTUNREACH)
		}
		for hop := range 2 {
			who := fmt.Sprintf("time over on the way from node to %s, at hop %d", name, hop+1)
			expectError(t, who, a.nodes[0].namespace, at(target), hop+1, unix.EHOSTUNREACH)
		}
	}
	expectError(t, "time over at the far node", a.nodes[0].pod, at(b.seenPod(1)), 4, unix.EHOSTUNREACH)
}

// expectError sends datagrams with that TTL until one causes an ICMP error.
func expectError(t *testing.T, who string, from namespace, to netip.AddrPort, hops int, want error) {
	t.Helper()
	c := datagrams(t, from, to, unix.IP_PMTUDISC_DONT)
	control(t, c, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, hops),
			// Required for errors of unreachable hosts.
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1))
	})
	var got syscall.Errno
	for end := time.Now().Add(answerWait); time.Now().Before(end) && got == 0; {
		if answer, err := question(c, "?", silence); err == nil {
			t.Fatalf("%s: answer %q, want %v", who, answer, want)
		} else {
			errors.As(err, &got)
		}
	}
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", who, got, want)
	}
}

// testErrorsAboutOthers: the peer's gateway sends a pod of a an error about a packet that was not sent to that peer,
// and the pod sends the peer an error about a packet that did not come from there. Both are dropped, as are redirects.
func testErrorsAboutOthers(t *testing.T, a, b side) {
	g, received := a.gateways[0], listenAll(t, a, b)
	stranger := netip.MustParseAddr("198.51.100.1")
	const unreachable, redirect = 3, 5
	expect := func(chain string, more int, then func()) {
		t.Helper()
		wait.Succeeds(t, answerWait, func() error { // repeated: a packet is lost while the tunnel is renewed
			received.forget()
			before := g.drops(chain)
			then()
			if !received.await(good) {
				return errors.New("the packet sent after it was not received")
			}
			if n := g.drops(chain) - before; n != more {
				return fmt.Errorf("%d packets dropped by %s, want %d", n, chain, more)
			}
			return nil
		})
	}
	fromPeer := func(kind byte, about []byte) func() {
		return func() {
			b.gateways[0].inject(t, icmpAbout(kind, b.pod(1), a.pod(1), about))
			b.gateways[0].inject(t, datagram(b.pod(1), a.pod(1), good))
		}
	}
	expect("quoted-to-cluster", 0, fromPeer(unreachable, datagram(a.pod(1), b.pod(1), "to the peer")))
	expect("quoted-to-cluster", 1, fromPeer(unreachable, datagram(a.pod(1), stranger, "to another host")))
	expect("quoted-to-cluster", 1, fromPeer(redirect, datagram(a.pod(1), b.pod(1), "to the peer")))
	fromPod := func(about []byte) func() {
		return func() {
			c := a.nodes[1].pod.ListenPacket("ip4:icmp", a.pod(1).String())
			message := icmpAbout(unreachable, a.pod(1), b.seenPod(1), about)[20:] // without its header
			_, err := c.WriteTo(message, &net.IPAddr{IP: b.seenPod(1).AsSlice()})
			require.NoError(t, errors.Join(err, c.Close()))
			toOverlay(t, a.nodes[1].pod, b.seenPod(1), []byte(good))
		}
	}
	expect("quoted-to-peer", 0, fromPod(datagram(b.seenPod(1), a.pod(1), "from the peer")))
	expect("quoted-to-peer", 1, fromPod(datagram(stranger, a.pod(1), "from another host")))
}

// icmpAbout returns an IPv4 packet with an ICMP message of the type, code 1, that quotes another packet.
func icmpAbout(kind byte, source, target netip.Addr, about []byte) []byte {
	const quoted = 20 + 8 // header and the following bytes: RFC 792
	b := append([]byte{kind, 1, 0, 0, 0, 0, 0, 0}, about[:quoted]...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return packet{protocol: unix.IPPROTO_ICMP, source: source, target: target, id: 1}.with(b)
}
