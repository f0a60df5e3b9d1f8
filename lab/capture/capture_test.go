package capture_test

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/underlay"
)

// TestCapture sends a packet from a node to a closed port of a node of another cluster. The capture has the packet as
// it enters the router, and the ICMP error that quotes it.
func TestCapture(t *testing.T) {
	s := spec.Default()
	u, err := underlay.New(s)
	require.NoError(t, err)
	t.Cleanup(func() { u.Router.Close(); u.Outside.Close() })
	var members []underlay.Member
	for _, c := range s.Clusters {
		m, err := u.Attach(c, c.NodeName(1), c.NodeAddress(1))
		require.NoError(t, err)
		t.Cleanup(func() { m.Namespace.Close() })
		members = append(members, m)
	}
	seen := make(chan capture.Packet, 100)
	c, err := capture.Start(u.Router.Path(), []string{"br-a", "br-b"}, func(p capture.Packet) {
		if p.Type == capture.IPv4 {
			p.Payload = bytes.Clone(p.Payload) // the next frame is read over it
			if p.Quoted != nil {
				p.Quoted.Payload = bytes.Clone(p.Quoted.Payload)
			}
			seen <- p
		}
	})
	require.NoError(t, err)
	from, to := netip.AddrPortFrom(members[0].Address, 4321), netip.AddrPortFrom(members[1].Address, 1234)
	if err := members[0].Namespace.Do(func() error {
		conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("hello"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	question := capture.Packet{
		Link: "br-a", Type: capture.IPv4, Source: from.Addr(), Target: to.Addr(), Protocol: capture.UDP,
		SourcePort: from.Port(), TargetPort: to.Port(), Payload: []byte("hello"),
	}
	quoted := question
	quoted.Link = "br-b"
	refusal := capture.Packet{
		Link: "br-b", Type: capture.IPv4, Source: to.Addr(), Target: from.Addr(), Protocol: capture.ICMP, Quoted: &quoted,
	}
	got := map[string]capture.Packet{} // by link: each is read by itself, so what comes later may be seen first
	for range 2 {
		select {
		case p := <-seen:
			if p.Quoted != nil {
				p.Payload = nil // as read from what is quoted
			}
			got[p.Link] = p
		case <-time.After(time.Minute):
			t.Fatalf("seen only: %v", got)
		}
	}
	if d := cmp.Diff(map[string]capture.Packet{"br-a": question, "br-b": refusal}, got,
		cmpopts.IgnoreFields(capture.Packet{}, "Sender", "Frame"), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("want, and seen:\n%s", d)
	}
	counts, err := c.Close()
	if err != nil || counts.Seen < 2 || counts.Missed != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	if len(seen) > 0 {
		t.Errorf("seen twice: %s", <-seen)
	}
}

// FuzzDecode reads any frame, and prints it.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "\x02\x02\x02\x02\x02\x02\x04\x04\x04\x04\x04\x04\x08\x06",
		"\x02\x02\x02\x02\x02\x02\x04\x04\x04\x04\x04\x04\x08\x00" +
			"\x45\x00\x00\x24\x00\x00\x00\x00\x40\x01\x00\x00\x0a\x01\x01\x01\x0a\x02\x02\x02" +
			"\x03\x03\x00\x00\x00\x00\x00\x00" +
			"\x45\x00\x00\x24\x00\x00\x00\x00\x40\x11\x00\x00\x0a\x02\x02\x02\x0a\x01\x01\x01\x00\x07\x00\x08",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if p := capture.Decode("link", frame); p.String() == "" {
			t.Error("says nothing")
		}
	})
}
