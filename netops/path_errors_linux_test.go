package netops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestErrorsArrive has pods and nodes told, by whoever is on the way, what became of their packets. An error that
// quoted the wrong addresses would find no socket.
func TestErrorsArrive(t *testing.T) {
	for _, kind := range overlays() {
		t.Run(string(kind), func(t *testing.T) {
			a, b := equalRanges().build(t, nil)
			join(kind, a, b)
			absent := b.seen(numbered(b.pods[0], 0x7705))
			const hops = 10 // more than there are
			for i, n := range a.nodes {
				for who, from := range map[string]namespace{"pod": n.pod, "node": n.namespace} {
					who = fmt.Sprintf("%s %d", who, i)
					expectError(t, who+", far pod", from, netip.AddrPortFrom(b.seenPod(1), servicePort+1), hops, unix.ECONNREFUSED)
					expectError(t, who+", far gateway", from, at(absent), hops, unix.EHOSTUNREACH)
				}
			}
			for name, target := range map[string]netip.Addr{"pod": b.seenPod(1), "node": b.seenNode(1)} {
				for hop := range 3 {
					who := fmt.Sprintf("time over on the way to a %s, at hop %d", name, hop+1)
					expectError(t, who, a.nodes[0].pod, at(target), hop+1, unix.EHOSTUNREACH)
				}
			}
			expectError(t, "time over at the far node", a.nodes[0].pod, at(b.seenPod(1)), 4, unix.EHOSTUNREACH)
		})
	}
}

// expectError sends datagrams, which so many hops may pass on, until one is answered by an ICMP error: the kernel
// makes few a second.
func expectError(t *testing.T, who string, from namespace, to netip.AddrPort, hops int, want error) {
	t.Helper()
	c := datagrams(t, from, to, unix.IP_PMTUDISC_DONT)
	control(t, c, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, hops),
			// Without it, the kernel keeps to itself that a host cannot be reached.
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1))
	})
	var got syscall.Errno
	for end := time.Now().Add(answerWait); time.Now().Before(end) && got == 0; {
		if answer, err := question(c, "anybody there?", silence); err == nil {
			t.Fatalf("%s: answer %q, want %v", who, answer, want)
		} else {
			errors.As(err, &got)
		}
	}
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", who, got, want)
	}
}

// testErrorsAboutOthers has the peer's gateway tell a pod what became of a packet that never went to that peer.
func testErrorsAboutOthers(t *testing.T, a, b side) {
	g, heard := a.gateways[0], listenAll(t, a)
	before := g.drops("quoted-to-cluster")
	tell := func(about []byte) {
		b.gateways[0].inject(t, icmpError(b.pod(1), a.pod(1), about))
		b.gateways[0].inject(t, datagram(b.pod(1), a.pod(1), good))
		eventually(t, "the packet sent after it", func() bool { return heard.has(good) })
		heard.forget()
	}
	tell(datagram(a.pod(1), b.pod(1), "to the peer"))
	if n := g.drops("quoted-to-cluster") - before; n != 0 {
		t.Errorf("%d errors about packets to the peer dropped", n)
	}
	tell(datagram(a.pod(1), netip.MustParseAddr("198.51.100.1"), "to somebody else"))
	if n := g.drops("quoted-to-cluster") - before; n != 1 {
		t.Errorf("%d errors about packets to somebody else dropped, want 1", n)
	}
}

// icmpError is an IPv4 packet that tells that the host, to which the other packet was sent, cannot be reached.
func icmpError(source, target netip.Addr, about []byte) []byte {
	const quoted = 20 + 8                                          // header, and what follows: RFC 792
	b := append([]byte{3, 1, 0, 0, 0, 0, 0, 0}, about[:quoted]...) // destination unreachable, host
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	from, to := source.As4(), target.As4()
	ip := []byte{0x45, 0, 0, 20 + byte(len(b)), 0, 1, 0, 0, 64, unix.IPPROTO_ICMP, 0, 0}
	ip = append(append(ip, from[:]...), to[:]...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	return append(ip, b...)
}
