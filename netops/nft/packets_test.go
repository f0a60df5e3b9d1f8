package nft

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

func postrouting(kind string, priority int, rules ...Rule) Chain {
	return Chain{
		Name: "after", Hook: &Hook{Type: kind, Point: "postrouting", Priority: priority}, Rules: rules,
	}
}

func forward(rules ...Rule) Chain {
	return Chain{Name: "through", Hook: &Hook{Type: "filter", Point: "forward"}, Rules: rules}
}

// TestRewrite translates sources and destinations 1:1 per packet, in both directions.
func TestRewrite(t *testing.T) {
	top := newTopology(t)
	p := netip.MustParsePrefix
	top.apply(Chain{
		Name: "before", Hook: &Hook{Type: "filter", Point: "prerouting", Priority: -300},
		Rules: []Rule{
			{IIf("left"), DAddr(p("10.8.0.0/24")), SetDAddrPrefix(p("10.2.0.0/24")), SetSAddrPrefix(p("10.9.0.0/16")), NoTrack()},
			{IIf("right"), DAddr(p("10.9.0.0/16")), SetDAddrPrefix(p("10.1.0.0/16")), SetSAddrPrefix(p("10.8.0.0/24")), NoTrack()},
		},
	})
	seen := exchange(t, top.left.ListenUDP(leftIP+":0"), "10.8.0.7", top.right.ListenUDP(rightIP+":0"))
	if want := netip.MustParseAddr("10.9.0.5"); seen != want {
		t.Errorf("source %s, want %s", seen, want)
	}
}

// TestQuotations: a sender receives an ICMP error for a closed port. It quotes the packet as sent, and its source is
// the packet's destination.
func TestQuotations(t *testing.T) {
	top := newTopology(t)
	p := netip.MustParsePrefix
	top.apply(Chain{
		Name: "before", Hook: &Hook{Type: "filter", Point: "prerouting", Priority: -300},
		Rules: []Rule{
			{IIf("left"), DAddr(p("10.8.0.0/24")), SetDAddrPrefix(p("10.2.0.0/24")), SetSAddrPrefix(p("10.9.0.0/16")), NoTrack()},
			{IIf("right"), ICMPType(3), QuotedSAddr(p("10.9.0.0/16")), SetQuotedSAddrPrefix(p("10.1.0.0/16"))},
			{IIf("right"), ICMPType(3), QuotedDAddr(p("10.2.0.0/25")), SetQuotedDAddrPrefix(p("10.8.0.0/25")), SetSAddrQuoted()},
			{IIf("right"), DAddr(p("10.9.0.0/16")), SetDAddrPrefix(p("10.1.0.0/16")), NoTrack()},
		},
	})
	var raw net.PacketConn
	var c net.Conn
	top.left.Inside(func() (err error) {
		if raw, err = (&net.ListenConfig{}).ListenPacket(t.Context(), "ip4:icmp", leftIP); err != nil {
			return err
		}
		c, err = (&net.Dialer{}).DialContext(t.Context(), "udp4", "10.8.0.7:9")
		return err
	})
	defer func() { _, _ = raw.Close(), c.Close() }()
	_, err := c.Write([]byte("?"))
	require.NoError(t, err)
	end := time.Now().Add(answerWait)
	require.NoError(t, errors.Join(c.SetReadDeadline(end), raw.SetReadDeadline(end)))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%v, want %v", err, unix.ECONNREFUSED)
	}
	if _, source, err := raw.ReadFrom(make([]byte, 1500)); err != nil || source.String() != "10.8.0.7" {
		t.Errorf("the error comes from %v (%v), want 10.8.0.7", source, err)
	}
}

// TestSNATKeep: a binding to the same address prevents later masquerading; an accept verdict does not.
func TestSNATKeep(t *testing.T) {
	tests := []struct {
		name string
		rule Rule
		want string
	}{
		{"accept", Rule{Accept()}, "10.2.0.1"},
		{"keep", Rule{SNATKeep()}, leftIP},
	}
	top := newTopology(t)
	top.router.nft("table ip cni {\nchain c {\ntype nat hook postrouting priority 100\nmasquerade\n}\n}\n")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			top.apply(postrouting("nat", 80, test.rule))
			seen := exchange(t, top.left.ListenUDP(leftIP+":0"), rightIP, top.right.ListenUDP(rightIP+":0"))
			if want := netip.MustParseAddr(test.want); seen != want {
				t.Errorf("source %s, want %s", seen, want)
			}
		})
	}
}

// TestSetSAddrPrefix verifies the new network bits of a source. With wrong checksums the packet would not be received.
func TestSetSAddrPrefix(t *testing.T) {
	top := newTopology(t)
	at := top.right.ListenUDP(rightIP + ":0")
	tests := map[string]string{"10.70.0.0/16": "10.70.0.5", "10.70.8.0/22": "10.70.8.5", "172.16.5.9/32": "172.16.5.9"}
	for to, want := range tests {
		top.apply(postrouting("filter", 110, Rule{OIf("right"), SetSAddrPrefix(netip.MustParsePrefix(to))}))
		_, err := top.left.ListenUDP(leftIP+":0").WriteTo([]byte("x"), at.LocalAddr())
		require.NoError(t, err)
		if seen, err := receive(at, answerWait); err != nil || seen.Addr() != netip.MustParseAddr(want) {
			t.Errorf("source %s (%v), want %s", seen, err, want)
		}
	}
}

// TestOverlayID accepts one VNI in a header as that of VXLAN and Geneve.
func TestOverlayID(t *testing.T) {
	top := newTopology(t)
	top.apply(forward(Rule{UDPDPort(6091), OverlayID(0x010203), Accept()}, Rule{Protocol(UDP), Drop()}))
	from := top.left.ListenUDP(leftIP + ":0")
	at, elsewhere := top.right.ListenUDP(rightIP+":6091"), top.right.ListenUDP(rightIP+":6092")
	header := []byte{0x08, 0, 0, 0, 1, 2, 3, 0}
	if !arrives(t, from, at, header, true) {
		t.Error("the right network does not arrive")
	}
	if arrives(t, from, elsewhere, header, false) {
		t.Error("another port arrives")
	}
	for i := 4; i < 7; i++ {
		wrong := slices.Clone(header)
		wrong[i]++
		if arrives(t, from, at, wrong, false) {
			t.Errorf("network %x arrives", wrong[4:7])
		}
	}
	if arrives(t, from, at, header[:6], false) {
		t.Error("half a header arrives")
	}
}

// TestClampMSS verifies the segment size that both ends negotiated.
func TestClampMSS(t *testing.T) {
	const timestamps = 12 // bytes of the TCP option (RFC 7323), which the kernel subtracts from the segment size
	top := newTopology(t)
	clamp := func(size uint16) []Chain {
		return []Chain{
			forward(Rule{IIf("left"), TCPSyn(), ClampMSS(size)}, Rule{IIf("right"), TCPSyn(), ClampMSS(size)}),
		}
	}
	tests := []struct {
		chains []Chain
		want   int
	}{
		{nil, 1460},
		{clamp(1200), 1200},
		{clamp(9000), 1460}, // never raised
	}
	for _, test := range tests {
		top.apply(test.chains...)
		client, server := dialTCP(t, top.left, top.right, rightIP)
		for _, end := range []*net.TCPConn{client, server} {
			if got := segmentSize(t, end); got != test.want-timestamps {
				t.Errorf("%s sends segments of %d bytes, want %d", end.LocalAddr(), got, test.want-timestamps)
			}
		}
	}
}

// segmentSize returns the number of data bytes per segment that a TCP end sends.
func segmentSize(t *testing.T, c *net.TCPConn) int {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || infoErr != nil {
		t.Fatal(err, infoErr)
	}
	return int(info.Snd_mss)
}

// TestMatches sends packets through a rule that drops them, and through one that does not match.
func TestMatches(t *testing.T) {
	p := netip.MustParsePrefix
	tests := []struct {
		drop, pass Rule
	}{
		{Rule{IIf("left")}, Rule{IIf("lef")}},
		{Rule{OIf("right")}, Rule{OIf("left")}},
		{Rule{IIfNot("right")}, Rule{IIfNot("left")}},
		{Rule{IIfGroup(linkGroup("left"))}, Rule{IIfGroup(linkGroup("right"))}},
		{Rule{OIfGroup(linkGroup("right"))}, Rule{OIfGroup(linkGroup("left"))}},
		{Rule{IIfGroupNot(linkGroup("right"))}, Rule{IIfGroupNot(linkGroup("left"))}},
		{Rule{OIfGroupNot(linkGroup("left"))}, Rule{OIfGroupNot(linkGroup("right"))}},
		{Rule{SAddr(p("10.1.0.0/23"))}, Rule{SAddr(p("10.1.0.0/30"))}},
		{Rule{DAddr(p("10.2.0.0/16"))}, Rule{DAddr(p("10.3.0.0/16"))}},
		{Rule{SAddr(p("0.0.0.0/0"))}, Rule{SAddrNot(p("0.0.0.0/0"))}},
		{Rule{SAddrNot(p("10.1.0.7/32"))}, Rule{SAddrNot(p(leftIP + "/32"))}},
		{Rule{DAddrNot(p(leftIP + "/32"))}, Rule{DAddrNot(p(rightIP + "/32"))}},
		{Rule{Counter()}, Rule{Fragment()}},
		{Rule{Counter()}, Rule{Options()}},
		{Rule{SAddrIn("left")}, Rule{SAddrIn("right")}},
		{Rule{DAddrIn("right")}, Rule{DAddrIn("left")}},
		{Rule{DAddrIn("right-host")}, Rule{DAddrIn("left-host")}},
		{Rule{UDPDPort(6091)}, Rule{UDPDPort(6092)}},
		{Rule{Protocol(UDP)}, Rule{Protocol(TCP)}},
		{Rule{CTState(New, Established)}, Rule{CTState(Invalid, Untracked)}},
		{Rule{CTDirection(Original)}, Rule{CTDirection(Reply)}},
		{Rule{CTMark(0)}, Rule{CTMark(1)}},
		{Rule{SetMark(5), Mark(5)}, Rule{SetMark(5), Mark(4)}},
		{Rule{SetCTMark(5), CTMark(5)}, Rule{SetCTMark(5), CTMark(4)}},
		{Rule{Counter()}, Rule{CTState(Invalid)}},
	}
	hosts := func(name, one, other string) Set {
		s := NewSet(name, parsed.Prefixes(one+"/32", other+"/32")...)
		s.Hosts = true
		return s
	}
	top := newTopology(t)
	at := top.right.ListenUDP(rightIP + ":6091")
	for _, test := range tests {
		for i, match := range []Rule{test.drop, test.pass} {
			top.router.apply(top.conn, Table{
				Name:   "packets",
				Sets:   []Set{NewSet("left", p(leftIP+"/32"), p("10.1.0.0/30")), NewSet("right", p("10.2.0.0/24")), hosts("left-host", leftIP, "10.2.0.1"), hosts("right-host", rightIP, "10.2.0.1")},
				Chains: []Chain{forward(append(slices.Clone(match), Drop()))},
			})
			want := i == 1
			if arrives(t, top.left.ListenUDP(leftIP+":0"), at, []byte("12345678"), want) != want {
				t.Errorf("%s: should arrive: %t", match, want)
			}
		}
	}
}
