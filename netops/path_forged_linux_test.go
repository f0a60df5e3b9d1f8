package netops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"
)

// frame is an overlay packet made by hand: a datagram to servicePort inside.
type frame struct {
	kind   LinkKind
	vni    uint32
	end    netip.Addr // internal address of the overlay's end
	source netip.Addr
	target netip.Addr
}

// bytes is the payload of the outer UDP packet: overlay header, Ethernet, IPv4, UDP.
func (f frame) bytes() []byte {
	b := []byte{0x08, 0, 0, 0} // VXLAN (RFC 7348): a network identifier follows
	if f.kind == KindGeneve {
		b = []byte{0, 0, 0x65, 0x58} // RFC 8926: no options, Ethernet
	}
	b = binary.BigEndian.AppendUint32(b, f.vni<<8)
	b = append(b, overlayMAC(f.end)...)
	b = append(b, 0x02, 0, 0, 0, 0, 1) // from any MAC
	b = append(b, 0x08, 0x00)          // IPv4
	const payload = "forged"
	source, target := f.source.As4(), f.target.As4()
	ip := []byte{0x45, 0, 0, 20 + 8 + byte(len(payload)), 0, 1, 0, 0, 64, 17, 0, 0}
	ip = append(append(ip, source[:]...), target[:]...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	b = append(b, ip...)
	b = binary.BigEndian.AppendUint16(b, servicePort) // answers would come back here
	b = binary.BigEndian.AppendUint16(b, servicePort)
	b = append(b, 0, 8+byte(len(payload)), 0, 0) // no checksum
	return append(b, payload...)
}

// checksum is that of an IPv4 header (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return ^uint16(sum + sum>>16)
}

// TestForgedOverlay sends overlay packets that no node or gateway would send. Only the right ones arrive.
func TestForgedOverlay(t *testing.T) {
	for _, kind := range overlays() {
		a, b := equalRanges().build(t, nil)
		join(kind, a, b)
		g, n := a.gateways[0], a.nodes[1]
		toGateway := frame{kind: kind, vni: g.config.VNI, end: g.config.Internal, source: a.pod(1), target: b.seenPod(1)}
		toNode := frame{kind: kind, vni: g.config.VNI, end: a.internal(1), source: b.seenPod(1), target: a.pod(1)}
		stranger := netip.MustParseAddr("10.99.0.1")
		with := func(f frame, change func(*frame)) frame { change(&f); return f }
		tests := map[string]struct {
			from  namespace
			frame frame
			chain string // that drops it; "": it arrives
		}{
			"node to gateway":          {n.namespace, toGateway, ""},
			"pod to gateway":           {n.pod, toGateway, "input"},
			"gateway, other network":   {n.namespace, with(toGateway, func(f *frame) { f.vni++ }), "input"},
			"gateway, foreign source":  {n.namespace, with(toGateway, func(f *frame) { f.source = stranger }), "from-overlay"},
			"gateway, no peer's":       {n.namespace, with(toGateway, func(f *frame) { f.target = a.pod(0) }), "from-overlay"},
			"gateway, its own address": {n.namespace, with(toGateway, func(f *frame) { f.target = g.config.Internal }), "from-overlay"},
			"gateway to node":          {g.namespace, toNode, ""},
			"pod to node":              {n.pod, toNode, "input"},
			"node, no peer's source":   {g.namespace, with(toNode, func(f *frame) { f.source = g.config.Internal }), "forward"},
			"node, no pod of its":      {g.namespace, with(toNode, func(f *frame) { f.target = a.pod(0) }), "forward"},
			"node, the node itself":    {g.namespace, with(toNode, func(f *frame) { f.target = a.node(1) }), "input"},
		}
		for name, test := range tests {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				outer, at, end := netip.AddrPortFrom(g.config.Nodes[1].Source, 6091), n.namespace, n.pod
				if test.frame.end == g.config.Internal {
					outer, at, end = netip.AddrPortFrom(n.config.Peers[0].Pod, 6091), g.namespace, b.nodes[1].pod
				}
				if test.chain == "" {
					test.frame.arrives(t, test.from, outer, end)
					return
				}
				before := at.drops(test.chain)
				test.frame.send(t, test.from, outer)
				eventually(t, "a drop in chain "+test.chain, func() bool { return at.drops(test.chain) > before })
			})
		}
	}
}

func (f frame) send(t *testing.T, from namespace, to netip.AddrPort) {
	t.Helper()
	c, err := dialFrom(t.Context(), from, "udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(f.bytes()); err != nil {
		t.Fatal(err)
	}
}

// arrives sees the datagram where the pod's server would.
func (f frame) arrives(t *testing.T, from namespace, to netip.AddrPort, end namespace) {
	t.Helper()
	seen := watch(t, end)
	f.send(t, from, to)
	if err := seen.SetReadDeadline(time.Now().Add(answerWait)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := seen.ReadFrom(make([]byte, 2000)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it does not arrive")
	} else if err != nil {
		t.Fatal(err)
	}
}
