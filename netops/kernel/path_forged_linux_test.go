package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// frame is a hand-made overlay packet with an inner datagram to servicePort.
type frame struct {
	kind   netops.LinkKind
	vni    uint32
	end    netip.Addr // internal address of the overlay end
	source netip.Addr
	target netip.Addr

	payload string
}

// frame returns a packet with an inner datagram in the overlay of a gateway.
func (g *testGateway) frame(end, source, target netip.Addr, payload string) frame {
	return frame{g.config.Overlay.Kind, g.config.VNI, end, source, target, payload}
}

// Payloads of packets that must be dropped, and of those that must arrive.
const (
	bad  = "a stray"
	good = "a good one"
)

// bytes returns the payload of the outer UDP packet: overlay header, Ethernet, IPv4, UDP.
func (f frame) bytes() []byte {
	return f.around(unix.ETH_P_IP, datagram(f.source, f.target, f.payload))
}

// around returns such a payload with another inner protocol and packet.
func (f frame) around(protocol uint16, inner []byte) []byte {
	b := []byte{0x08, 0, 0, 0} // VXLAN (RFC 7348): a network identifier follows
	if f.kind == netops.KindGeneve {
		b = []byte{0, 0, 0x65, 0x58} // RFC 8926: no options, Ethernet
	}
	b = binary.BigEndian.AppendUint32(b, f.vni<<8)
	b = append(b, netops.OverlayMAC(f.end)...)
	b = append(b, 0x02, 0, 0, 0, 0, 1) // from any MAC
	return append(binary.BigEndian.AppendUint16(b, protocol), inner...)
}

// around returns the payload of an outer UDP packet with an inner protocol and packet, in the overlay of a gateway.
func (g *testGateway) around(end netip.Addr, protocol uint16, inner []byte) []byte {
	return g.frame(end, netip.Addr{}, netip.Addr{}, "").around(protocol, inner)
}

// forgery is an overlay packet with its sender and the expected result.
type forgery struct {
	from  namespace
	to    netip.Addr // destination of the outer packet
	frame frame
	at    namespace // namespace that drops it
	chain string    // that drops it; "": it is accepted
}

// TestForgedOverlay sends overlay packets that no node or gateway would send. Only valid ones are accepted.
func TestForgedOverlay(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		outside := a.outside()
		a.router.IP(fmt.Sprintf("route add %s via %s", a.nodes[0].config.Peers[0].Gateways[0].Pod, a.node(0)))
		// A strict reverse path filter would drop these packets as well; here the rules must.
		a.nodes[1].Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
		received := listenAll(t, a, b)
		t.Run("pods use that port, too", func(t *testing.T) {
			toOverlay(t, b.nodes[1].pod, a.seenPod(1), []byte(good))
			wait.Until(t, "the packet", answerWait, func() bool { return received.has(good) })
		})
		all := forgeries(a, b, outside)
		for name, f := range all {
			t.Run(name, func(t *testing.T) { f.test(t, all, received) })
		}
		t.Run("out of its group/gateway", func(t *testing.T) { testUngrouped(t, a.gateways[0], all, received) })
		// Rules match the overlay by group or name: packets on a link outside the group are not accepted.
		n := a.nodes[1]
		n.IP("link set dev lqn-gw7 group 0")
		for name, f := range all {
			if f.at == n.namespace {
				t.Run(fmt.Sprintf("out of its group/%s", name), func(t *testing.T) { f.test(t, all, received) })
			}
		}
	})
}

// testUngrouped sends packets to a gateway whose overlay link is not in its group. Packets that it accepted would be
// captured before the last one, which is sent after the link is restored.
func testUngrouped(t *testing.T, g *testGateway, all map[string]forgery, received *capture) {
	received.forget()
	g.IP("link set dev lqn-overlay group 0")
	for _, f := range all {
		if f.at == g.namespace && f.chain != "input" { // that chain is for packets outside the overlay
			f.send(t, bad)
		}
	}
	g.follow()
	all["node to gateway"].send(t, good)
	wait.Until(t, "the packet sent after them", answerWait, func() bool { return received.has(good) })
	if received.has(bad) {
		t.Error("one of them arrived")
	}
}

// test sends the packet. If it must be dropped, a valid packet follows.
func (f forgery) test(t *testing.T, all map[string]forgery, received *capture) {
	if f.chain == "" {
		received.forget()
		var sent time.Time
		wait.Until(t, "the packet", answerWait, func() bool { // a busy guest loses one now and then
			if time.Since(sent) > time.Second {
				sent = time.Now()
				f.send(t, good)
			}
			return received.has(good)
		})
		return
	}
	after := all["node to gateway"]
	if f.frame.end == all["gateway to node"].frame.end {
		after = all["gateway to node"]
	}
	received.expectDrop(t, f.at, f.chain, func() { f.send(t, bad) }, func() { after.send(t, good) })
}

func (f forgery) send(t *testing.T, payload string) {
	t.Helper()
	f.frame.payload = payload
	toOverlay(t, f.from, f.to, f.frame.bytes())
}

// bridgesFilter reports whether br_netfilter is loaded, so that nftables processes packets that a bridge forwards
// between its ports.
func bridgesFilter() bool {
	_, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables")
	return err == nil
}

// toOverlay sends a datagram to the overlay's port.
func toOverlay(t *testing.T, from namespace, to netip.Addr, payload []byte) {
	t.Helper()
	c, err := from.Dial(t.Context(), "udp4", netip.AddrPortFrom(to, 6091))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Write(payload)
	require.NoError(t, err)
}

// forgeries returns packets to A's gateway and second node, from permitted and other senders, with valid and invalid
// VNIs, sources and destinations.
func forgeries(a, b side, outside namespace) map[string]forgery {
	g, n := a.gateways[0], a.nodes[1]
	gateway, node := n.config.Peers[0].Gateways[0].Pod, a.node(1)
	toGateway := g.frame(g.config.Internal, a.pod(1), b.seenPod(1), "")
	toNode := g.frame(a.internal(1), b.seenPod(1), a.pod(1), "")
	stranger := netip.MustParseAddr("10.99.0.1")
	with := func(f frame, change func(*frame)) frame { change(&f); return f }
	otherNetwork := func(f frame) frame { return with(f, func(f *frame) { f.vni++ }) }
	from := func(f frame, a netip.Addr) frame { return with(f, func(f *frame) { f.source = a }) }
	to := func(f frame, a netip.Addr) frame { return with(f, func(f *frame) { f.target = a }) }
	all := map[string]forgery{
		"node to gateway":                   {n.namespace, gateway, toGateway, namespace{}, ""},
		"gateway, other network":            {n.namespace, gateway, otherNetwork(toGateway), g.namespace, "input"},
		"gateway, from a stranger":          {n.namespace, gateway, from(toGateway, stranger), g.namespace, "to-peer"},
		"gateway, from the peer":            {n.namespace, gateway, from(toGateway, b.seenPod(1)), g.namespace, "to-peer"},
		"gateway, from the tunnel's end":    {n.namespace, gateway, from(toGateway, g.config.Tunnels[0].Peer), g.namespace, "to-peer"},
		"gateway, from another gateway":     {n.namespace, gateway, from(toGateway, g.config.Internal.Next()), g.namespace, "to-peer"},
		"gateway, to a pod of its own side": {n.namespace, gateway, to(toGateway, a.pod(0)), g.namespace, "from-overlay"},
		"gateway, to itself, from a pod":    {n.namespace, gateway, to(toGateway, g.config.Internal), g.namespace, "for-self"},
		"gateway, to the tunnel's end":      {n.namespace, gateway, to(toGateway, g.config.Tunnels[0].Peer), g.namespace, "from-overlay"},
		"gateway, to its pod's address":     {n.namespace, gateway, to(toGateway, gateway), g.namespace, "from-overlay"},
		"gateway, to a Service":             {n.namespace, gateway, to(toGateway, netip.MustParseAddr(clusterIP)), g.namespace, "from-overlay"},

		"node, other network":            {g.namespace, node, otherNetwork(toNode), n.namespace, "outer"},
		"gateway to node":                {g.namespace, node, toNode, namespace{}, ""},
		"node, from a stranger":          {g.namespace, node, from(toNode, stranger), n.namespace, "from-b"},
		"node, from the gateway":         {g.namespace, node, from(toNode, g.config.Internal), n.namespace, "to-node"},
		"node, from a pod of its own":    {g.namespace, node, from(toNode, a.pod(0)), n.namespace, "from-b"},
		"node, to another node's pod":    {g.namespace, node, to(toNode, a.pod(0)), n.namespace, "to-node"},
		"node, to a gateway":             {g.namespace, node, to(toNode, gateway), n.namespace, "to-node"},
		"node, to another node":          {g.namespace, node, to(toNode, a.node(0)), n.namespace, "to-node"},
		"node, to the node":              {g.namespace, node, to(toNode, node), n.namespace, "to-node"},
		"node, to its internal address":  {g.namespace, node, to(toNode, a.internal(1)), n.namespace, "to-node"},
		"node, to its address for pods":  {g.namespace, node, to(toNode, a.inPods(1, bridgeNumber)), n.namespace, "into-node"},
		"node, to all of its pods":       {g.namespace, node, to(toNode, a.inPods(1, 255)), n.namespace, "into-node"},
		"node, to a group":               {g.namespace, node, to(toNode, netip.MustParseAddr("224.0.0.1")), n.namespace, "to-node"},
		"node, to the broadcast address": {g.namespace, node, to(toNode, netip.MustParseAddr("255.255.255.255")), n.namespace, "to-node"},
		"node, to the loopback address":  {g.namespace, node, to(toNode, netip.MustParseAddr("127.0.0.1")), n.namespace, "to-node"},
		"pod of the peer, by the tunnel": {b.nodes[1].pod, a.seenNode(1), otherNetwork(toNode), n.namespace, "to-node"},
		"the same, to the gateway":       {b.nodes[1].pod, a.seen(gateway), otherNetwork(toGateway), a.nodes[0].namespace, "to-pods"},
	}
	nodeOf := map[string]namespace{"pod": n.namespace, "pod of another node": a.nodes[0].namespace}
	for name, sender := range map[string]namespace{
		"pod": n.pod, "pod of another node": a.nodes[0].pod, "host of no cluster": outside,
	} {
		for what, change := range map[string]func(frame) frame{
			"": func(f frame) frame { return f }, ", other network": otherNetwork,
			", forged source": func(f frame) frame { return from(f, stranger) },
		} {
			atGateway, atNode := forgery{sender, gateway, change(toGateway), g.namespace, "input"}, forgery{sender, node, change(toNode), n.namespace, "outer"}
			if own, is := nodeOf[name]; is && change(toNode).vni == toNode.vni { // its own node drops it
				atNode.at, atNode.chain = own, "untracked"
				if own != a.nodes[0].namespace || bridgesFilter() { // the gateway is on the same bridge
					atGateway.at, atGateway.chain = own, "untracked"
				}
			}
			all[name+" to gateway"+what], all[name+" to node"+what] = atGateway, atNode
		}
	}
	return all
}
