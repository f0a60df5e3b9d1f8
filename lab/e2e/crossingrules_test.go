package e2e

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/spec"
)

// crossingRule describes packets that are allowed at the lab's router while clusters are connected.
type crossingRule struct {
	name  string
	obeys func(capture.Packet) bool
}

// ruleTunnel is the name of the rule for WireGuard's own packets.
const ruleTunnel = "WireGuard"

// outsideLink is the router's link to the machine outside; linkOf is that to a cluster's node network.
const outsideLink = "outside"

func linkOf(c spec.Cluster) string { return "br-" + c.Name }

// crossingRules names all that may be seen. Packets of pods may not, whatever addresses they bear and whatever carries
// them: the rules go by the nodes' addresses and by what is in the packets.
func crossingRules(declared spec.Spec) []crossingRule {
	networks, services := map[string]netip.Prefix{outsideLink: spec.OutsideNetwork}, map[string]netip.Prefix{}
	for _, c := range declared.Clusters {
		networks[linkOf(c)], services[linkOf(c)] = c.NodeNetwork, c.ServiceCIDR
	}
	between := betweenNodes(declared)
	tunnel := func(p capture.Packet) bool { return p.Protocol == capture.UDP && !p.Fragment && isWireGuard(p.Payload) }
	size := func(p capture.Packet) bool { return p.Protocol == capture.UDP && !p.Fragment && isSizeProbe(p.Payload) }
	return []crossingRule{
		{ruleTunnel, func(p capture.Packet) bool { return between(p) && !talk(p) && tunnel(p) }},
		{"sizes of packets, probed by gateways", func(p capture.Packet) bool { return between(p) && !talk(p) && size(p) }},
		{"errors about these", func(p capture.Packet) bool {
			return between(p) && !talk(p) && p.Quoted != nil && p.Quoted.Source == p.Target && (tunnel(*p.Quoted) || size(*p.Quoted))
		}},
		{"hosts outside that a exposes, and a's nodes", func(p capture.Packet) bool {
			nodes := networks["br-a"]
			return p.Link == "br-a" && nodes.Contains(p.Source) && slices.Contains(spec.OutsideHosts(), p.Target) ||
				p.Link == outsideLink && slices.Contains(spec.OutsideHosts(), p.Source) && nodes.Contains(p.Target)
		}},
		// kube-proxy no longer translates what a client sends to close its connection.
		{"ends of connections to deleted Services of the cluster", func(p capture.Packet) bool {
			return p.Type == capture.IPv4 && p.Protocol == capture.TCP && !p.Fragment && len(p.Payload) == 0 &&
				networks[p.Link].Contains(p.Source) && services[p.Link].Contains(p.Target)
		}},
		{"neighbours of a link", func(p capture.Packet) bool {
			return p.Type == capture.ARP && networks[p.Link].Contains(p.Source) && networks[p.Link].Contains(p.Target)
		}},
		{"IPv6 of a link, of its own accord", func(p capture.Packet) bool {
			return p.Type == capture.IPv6 && (p.Protocol == capture.ICMPv6 || p.Protocol == capture.HopByHop) && !talk(p) &&
				(p.Source.IsUnspecified() || p.Source.IsLinkLocalUnicast()) && p.Target.IsLinkLocalMulticast()
		}},
	}
}

// betweenNodes returns a function that reports whether a packet goes from nodes of one cluster to nodes of another.
func betweenNodes(declared spec.Spec) func(capture.Packet) bool {
	networks := map[string]netip.Prefix{}
	for _, c := range declared.Clusters {
		networks[linkOf(c)] = c.NodeNetwork
	}
	return func(p capture.Packet) bool {
		if p.Type != capture.IPv4 || !networks[p.Link].Contains(p.Source) {
			return false
		}
		for link, network := range networks {
			if link != p.Link && network.Contains(p.Target) {
				return true
			}
		}
		return false
	}
}

// matching returns the name of a rule that a packet matches; "": none.
func matching(rules []crossingRule, p capture.Packet) string {
	for _, r := range rules {
		if r.obeys(p) {
			return r.name
		}
	}
	return ""
}

// talk reports whether a frame contains the payload of pods, requests or answers.
func talk(p capture.Packet) bool {
	for _, text := range []string{podPayload, " node=a-", " node=b-", " node=c-"} {
		if bytes.Contains(p.Frame, []byte(text)) {
			return true
		}
	}
	return false
}

// isWireGuard reports whether a datagram has the shape of WireGuard's messages: their type, three zeros, and its size.
func isWireGuard(payload []byte) bool {
	if len(payload) < 4 || payload[1]|payload[2]|payload[3] != 0 {
		return false
	}
	switch payload[0] {
	case 1: // initiation of a handshake
		return len(payload) == 148
	case 2: // its response
		return len(payload) == 92
	case 3: // cookie
		return len(payload) == 64
	case 4: // data: a header of 16 bytes, a tag of 16; some may be in one segment that a card would cut
		return len(payload) >= 32
	}
	return false
}

// isSizeProbe reports whether a datagram is one of liqonet's echoes without data of nodes: all bytes are zero from
// their addresses to the end of the padding.
func isSizeProbe(payload []byte) bool {
	const flags, ofPath, nodes = 6, 1 << 3, 32 // an offset, its only bit, and an offset: see package netops/echo
	return bytes.HasPrefix(payload, []byte("LQNE")) && len(payload) > nodes && payload[flags]&^ofPath == 0 &&
		len(bytes.Trim(payload[nodes:], "\x00")) == 0
}

// TestCrossingRules judges packets of all kinds, most of which must never be seen.
func TestCrossingRules(t *testing.T) {
	a, b := netip.MustParseAddr("172.31.1.11"), netip.MustParseAddr("172.31.2.12")
	pod, seen, host := netip.MustParseAddr("10.244.1.5"), netip.MustParseAddr("10.71.2.7"), spec.OutsideHosts()[0]
	data := append([]byte{4, 0, 0, 0}, make([]byte, 92)...)
	geneve := append([]byte{0, 0, 0x65, 0x58}, make([]byte, 92)...)
	udp := func(link string, from, to netip.Addr, payload []byte) capture.Packet {
		return capture.Packet{
			Link: link, Type: capture.IPv4, Source: from, Target: to, Protocol: capture.UDP, Payload: payload, Frame: payload,
		}
	}
	quoting := func(q capture.Packet) capture.Packet {
		return capture.Packet{Link: "br-b", Type: capture.IPv4, Source: b, Target: a, Protocol: capture.ICMP, Quoted: &q}
	}
	ofType := func(kind uint16, protocol byte, from, to string) capture.Packet {
		return capture.Packet{
			Link: "br-a", Type: kind, Protocol: protocol, Source: netip.MustParseAddr(from), Target: netip.MustParseAddr(to),
		}
	}
	closing := ofType(capture.IPv4, capture.TCP, a.String(), "10.96.101.90")
	unsent, fromPod := closing, closing
	unsent.Payload, fromPod.Source = []byte("hello"), pod
	fragment := udp("br-a", a, b, data)
	fragment.Fragment = true
	probe := append([]byte("LQNE\x01\x01"), make([]byte, 500)...)
	report := append([]byte("LQNE\x01\x01\x02"), make([]byte, 500)...)
	for name, c := range map[string]struct {
		packet capture.Packet
		want   bool
	}{
		"data":                               {udp("br-a", a, b, data), true},
		"an initiation":                      {udp("br-a", a, b, append([]byte{1, 0, 0, 0}, make([]byte, 144)...)), true},
		"a long initiation":                  {udp("br-a", a, b, append([]byte{1, 0, 0, 0}, make([]byte, 145)...)), false},
		"data with what pods say":            {udp("br-a", a, b, append(data, podPayload...)), false},
		"data with what pods answer":         {udp("br-a", a, b, append(data, " node=b-1 "...)), false},
		"data from a pod's address":          {udp("br-a", pod, b, data), false},
		"data to a pod's address":            {udp("br-a", a, seen, data), false},
		"data in fragments":                  {fragment, false},
		"data from the other's nodes":        {udp("br-a", b, a, data), false},
		"the overlay":                        {udp("br-a", a, b, geneve), false},
		"a pod's packet, as a node's":        {udp("br-a", a, seen, []byte("hello")), false},
		"a datagram between nodes":           {udp("br-a", a, b, []byte("hello")), false},
		"TCP between nodes":                  {ofType(capture.IPv4, capture.TCP, a.String(), b.String()), false},
		"a size probe":                       {udp("br-a", a, b, probe), true},
		"a node's report":                    {udp("br-a", a, b, report), false},
		"a size probe with content":          {udp("br-a", a, b, append(probe, 1)), false},
		"an error about data":                {quoting(udp("br-b", a, b, data)), true},
		"an error about a pod's packet":      {quoting(udp("br-b", a, b, []byte("hello"))), false},
		"a node of a to a host outside":      {udp("br-a", a, host, []byte("hello")), true},
		"a host outside to a node of a":      {udp("outside", host, a, []byte("hello")), true},
		"a pod of a to a host outside":       {udp("br-a", pod, host, []byte("hello")), false},
		"a node of b to a host outside":      {udp("br-b", b, host, []byte("hello")), false},
		"a host outside to a node of b":      {udp("outside", host, b, []byte("hello")), false},
		"a host outside to a pod":            {udp("outside", host, pod, []byte("hello")), false},
		"closing, to a Service":              {closing, true},
		"data to a Service":                  {unsent, false},
		"closing, from a pod to a Service":   {fromPod, false},
		"who has a node's address":           {ofType(capture.ARP, 0, a.String(), "172.31.1.254"), true},
		"who has a pod's address":            {ofType(capture.ARP, 0, a.String(), seen.String()), false},
		"routers of IPv6":                    {ofType(capture.IPv6, capture.ICMPv6, "fe80::1", "ff02::2"), true},
		"UDP over IPv6":                      {ofType(capture.IPv6, capture.UDP, "fe80::1", "ff02::fb"), false},
		"IPv6 to anywhere":                   {ofType(capture.IPv6, capture.ICMPv6, "2001:db8::1", "2001:db8::2"), false},
		"a frame of which nothing is known":  {capture.Packet{Link: "br-a"}, false},
		"another kind of packet with no UDP": {ofType(capture.IPv4, 47, a.String(), b.String()), false},
	} {
		if rule := matching(crossingRules(spec.Default()), c.packet); (rule != "") != c.want {
			t.Errorf("%s obeys %q, want one: %v", name, rule, c.want)
		}
	}
}
