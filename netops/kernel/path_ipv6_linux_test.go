package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestForgedOverlayIPv6 sends nodes and gateways overlay packets by IPv6, which they never use: from neighbours, for
// which a link-local address is enough, whole and in fragments, to one address and to all nodes of the link.
func TestForgedOverlayIPv6(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		g, n := a.gateways[0], a.nodes[0]
		received := listenAll(t, a, b)
		toGateway := g.frame(g.config.Internal, a.pod(0), b.seenPod(1), bad)
		toNode := g.frame(a.internal(0), b.seenPod(1), a.pod(0), bad)
		for name, f := range map[string]struct {
			from  namespace
			by    string // link of the sender
			at    namespace
			link  string // of the receiver
			frame frame
		}{
			"pod to gateway":          {n.pod, "eth0", g.namespace, "eth0", toGateway},
			"node to its gateway":     {n.namespace, "cni0", g.namespace, "eth0", toGateway},
			"gateway to its node":     {g.namespace, "eth0", n.namespace, "cni0", toNode},
			"pod to node":             {n.pod, "eth0", n.namespace, "cni0", toNode},
			"host of the nodes' link": {a.nodes[1].namespace, "eth0", n.namespace, "eth0", toNode},
		} {
			for how, send := range map[string]struct {
				to  string
				end []byte // of the payload: longer payloads are fragmented
			}{
				"":              {f.at.linkLocal(f.link), nil},
				", fragments":   {f.at.linkLocal(f.link), make([]byte, 3000)},
				", to all":      {"ff02::1", nil},
				", all, pieces": {"ff02::1", make([]byte, 3000)},
			} {
				t.Run(fmt.Sprintf("%s%s", name, how), func(t *testing.T) {
					received.forget()
					payload := append(f.frame.bytes(), send.end...)
					expectDrop(t, f.at, "ipv6-outer", func() { toLinkLocal(t, f.from, f.by, send.to, payload) })
					expect(t, n.pod, at(b.seenPod(1)), "b1", a.seenPod(0))
					if received.has(bad) {
						t.Error("it arrived")
					}
				})
			}
		}
	})
}

// TestInnerIPv6: gateway and node send each other IPv6 packets in the overlay, with IPv6 forwarding as in a dual-stack
// cluster. They do not answer ARP there either.
func TestInnerIPv6(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		g, n := a.gateways[0], a.nodes[1]
		for _, ns := range []namespace{g.namespace, n.namespace} {
			ns.Run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
		}
		n.IP("addr add fd00::1/64 dev cni0 nodad")
		n.pod.IP("addr add fd00::5/64 dev eth0 nodad")
		n.pod.IP("route add default via fd00::1")
		g.IP("route add fd00:1::/64 dev lqn-tunnel")
		toNode := g.frame(a.internal(1), b.seenPod(1), a.pod(1), "")
		toGateway := g.frame(g.config.Internal, a.pod(1), b.seenPod(1), "")
		received := watch6(t, n.pod)
		toPod := func(payload string) {
			toOverlay(t, g.namespace, a.node(1), toNode.around(unix.ETH_P_IPV6, datagram6("fd00:1::7", "fd00::5", payload)))
		}
		// Without our table the packet arrives.
		n.Run("nft", "delete", "table", "ip6", netops.Table)
		wait.Until(t, "the packet, without our table", answerWait, func() bool { toPod(good); return received.has(good) })
		n.follow()
		expectDrop(t, n.namespace, "ipv6-arrival", func() { toPod(bad) })
		fromPod := toGateway.around(unix.ETH_P_IPV6, datagram6("fd00::5", "fd00:1::7", bad))
		expectDrop(t, g.namespace, "ipv6-arrival", func() { toOverlay(t, n.namespace, g.config.Pod, fromPod) })
		takeTurns(t, n.namespace)
		if received.has(bad) {
			t.Error("the pod got an IPv6 packet of the gateway")
		}
		for ns, link := range map[namespace]string{g.namespace: netops.Overlay, n.namespace: netops.NodeLink(g.config.VNI)} {
			if shown := ns.IP("link show dev " + link); !strings.Contains(shown, "NOARP") {
				t.Errorf("ARP is on:\n%s", shown)
			}
		}
	})
}

// linkLocal returns the link-local IPv6 address of a link when it is no longer tentative.
func (ns namespace) linkLocal(link string) string {
	ns.t.Helper()
	var address string
	wait.Until(ns.t, "an IPv6 address of "+link, answerWait, func() bool {
		words := strings.Fields(ns.IP("-6 -o addr show dev " + link + " scope link -tentative"))
		if len(words) < 4 {
			return false
		}
		address, _, _ = strings.Cut(words[3], "/")
		return true
	})
	return address
}

// toLinkLocal sends a datagram to the overlay's port by IPv6, on a link of the sender.
func toLinkLocal(t *testing.T, from namespace, link, to string, payload []byte) {
	t.Helper()
	from.linkLocal(link)
	from.Inside(func() error {
		l, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		// By its number: package net caches the numbers of names, which differ between namespaces.
		c, err := (&net.Dialer{}).DialContext(t.Context(), "udp6", fmt.Sprintf("[%s%%%d]:6091", to, l.Index))
		if err != nil {
			return err
		}
		_, err = c.Write(payload)
		return errors.Join(err, c.Close())
	})
}

// datagram6 returns an IPv6 packet to servicePort.
func datagram6(source, target, payload string) []byte {
	from, to := netip.MustParseAddr(source).As16(), netip.MustParseAddr(target).As16()
	b := []byte{0x60, 0, 0, 0, 0, 8 + byte(len(payload)), unix.IPPROTO_UDP, 64}
	b = append(append(b, from[:]...), to[:]...)
	b = binary.BigEndian.AppendUint16(b, servicePort)
	b = binary.BigEndian.AppendUint16(b, servicePort)
	b = append(b, 0, 8+byte(len(payload)), 0, 0)
	return append(b, payload...)
}

// watch6 captures all UDP packets that a namespace receives by IPv6.
func watch6(t *testing.T, ns namespace) *capture {
	t.Helper()
	e := &capture{}
	c := ns.For(t).ListenPacket("ip6:udp", "::")
	go func() {
		for buf := make([]byte, 2000); ; {
			n, _, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			e.mu.Lock()
			e.received = append(e.received, string(bytes.TrimSpace(buf[min(n, 8):n])))
			e.mu.Unlock()
		}
	}()
	return e
}
