package echo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

var sameAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func fullMessage() Message {
	return Message{
		Kind: Reply, Session: 0x0102030405060708, Sequence: 0x11121314, Sent: 0x2122232425262728, Size: 88,
		Content: Content{
			Node: 9, Path: Path{Asked: true, Size: 1500}, Witness: true, Endpoint: netip.MustParseAddr("192.0.2.9"),
			Report: Report{
				Node: 7, OverlayRTT: 300 * time.Microsecond,
				Verified: true, VerifiedAge: 1500 * time.Millisecond, VerifiedRTT: 2 * time.Millisecond,
			},
		},
	}
}

// From the first release on, the wire format must be stable, because the two clusters of a peering are not upgraded
// together.
func TestWireFormat(t *testing.T) {
	const want = "4c514e4501020007" + // magic, version 1, reply, three flags
		"0102030405060708" + "2122232425262728" + "11121314" + "005805dc" + // session, sent, sequence, size, path
		"00000009" + "00000007" + "0000012c" + "000005dc" + "000007d0" + // node, own node, µs, ms, µs
		"0000000000000000" + "00000000" + // no epochs, no number of nodes
		"00000000000000000000ffffc0000209" + // endpoint
		"0000000000000000"
	got, err := fullMessage().AppendTo(nil)
	require.NoError(t, err)
	if hex.EncodeToString(got) != want {
		t.Errorf("message in wire format:\n got %x\nwant %s", got, want)
	}
}

func TestParseReadsWhatAppendToWrote(t *testing.T) {
	for name, m := range map[string]Message{
		"smallest":     {Kind: Request, Size: MinSize},
		"largest":      {Kind: Request, Size: MaxSize, Session: math.MaxUint64, Sequence: math.MaxUint32, Sent: -1},
		"all content":  fullMessage(),
		"not yet seen": {Kind: Request, Size: 100, Content: Content{Report: Report{Node: 7}}},
		"silent path":  {Kind: Request, Size: 100, Content: Content{Path: Path{Asked: true}}},
		"witness":      {Kind: Reply, Size: 100, Content: Content{Witness: true}},
		"no path on":   {Kind: Reply, Size: 100, Content: Content{NoWay: true}},
		"draining":     {Kind: Reply, Size: 100, Content: Content{Draining: true}},
		"unused":       {Kind: Request, Size: 100, Content: Content{Unused: true}},
		"epochs":       {Kind: Reply, Size: MinSize, Content: Content{Epoch: math.MaxUint32, Newest: 1}},
		"endpoint":     {Kind: Request, Size: MinSize, Content: Content{Epoch: 1, Endpoint: netip.MustParseAddr("192.0.2.9")}},
		"IPv6":         {Kind: Reply, Size: MinSize, Content: Content{Endpoint: netip.MustParseAddr("2001:db8::9")}},
		"own node":     {Kind: Reply, Size: MinSize, Content: Content{Endpoint: netip.MustParseAddr("192.0.2.9"), OwnNode: true}},
		"nodes":        {Kind: Reply, Size: MinSize, Content: Content{Nodes: math.MaxUint32}},
		"node only":    {Kind: Reply, Size: 100, Content: Content{Node: math.MaxUint32}},
	} {
		packet, err := m.AppendTo([]byte("before"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(packet, []byte("before")) || len(packet) != len("before")+m.Size {
			t.Errorf("%s: AppendTo made %d bytes of a message of %d", name, len(packet), m.Size)
		}
		got, err := Parse(packet[len("before"):])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		assert.Equal(t, name, m, got, sameAddr)
	}
}

func TestDurationsOutOfRangeBecomeTheNearest(t *testing.T) {
	m := fullMessage()
	m.Content.Report.OverlayRTT, m.Content.Report.VerifiedAge = -time.Second, 365*24*time.Hour
	packet, _ := m.AppendTo(nil)
	got, err := Parse(packet)
	require.NoError(t, err)
	if r := got.Content.Report; r.OverlayRTT != 0 || r.VerifiedAge != math.MaxUint32*time.Millisecond {
		t.Errorf("read overlay RTT %v, proof age %v", r.OverlayRTT, r.VerifiedAge)
	}
}

func TestAppendToRefusesSizes(t *testing.T) {
	for _, size := range []int{0, MinSize - 1, MaxSize + 1} {
		if b, err := (Message{Kind: Request, Size: size}).AppendTo(nil); err == nil || len(b) != 0 {
			t.Errorf("size %d: %d bytes, error %v", size, len(b), err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	change := func(at int, to byte) []byte {
		packet, _ := fullMessage().AppendTo(nil)
		packet[at] = to
		return packet
	}
	sound, _ := fullMessage().AppendTo(nil)
	for name, c := range map[string]struct {
		packet []byte
		want   error
	}{
		"nothing":          {nil, ErrShort},
		"one byte short":   {sound[:MinSize-1], ErrShort},
		"truncated":        {sound[:len(sound)-1], ErrLength},
		"longer":           {append(bytes.Clone(sound), 0), ErrLength},
		"foreign":          {change(0, 'X'), ErrMagic},
		"future version":   {change(4, version+1), ErrVersion},
		"version zero":     {change(4, 0), ErrVersion},
		"kind zero":        {change(5, 0), ErrKind},
		"kind three":       {change(5, 3), ErrKind},
		"stated too short": {change(29, MinSize), ErrLength},
	} {
		if _, err := Parse(c.packet); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

func TestParseIgnoresWhatLaterVersionsAdd(t *testing.T) {
	want := fullMessage()
	want.Size = MinSize + 1
	packet, _ := want.AppendTo(nil)
	packet[6], packet[MinSize] = 0xf8, 1
	got, err := Parse(packet)
	require.NoError(t, err)
	assert.Equal(t, "message", want, got, sameAddr)
}

func TestParseAllocatesNothing(t *testing.T) {
	sound, _ := fullMessage().AppendTo(nil)
	bad := bytes.Clone(sound)
	bad[0] = 0
	if n := testing.AllocsPerRun(100, func() {
		_, _ = Parse(sound)
		_, _ = Parse(bad)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	sound, _ := fullMessage().AppendTo(nil)
	f.Add(sound)
	f.Add(sound[:MinSize])
	f.Add([]byte("LQNE"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := Parse(packet)
		if err != nil {
			return
		}
		again, err := m.AppendTo(nil)
		if err != nil {
			t.Fatalf("%+v was read but cannot be written: %v", m, err)
		}
		back, err := Parse(again)
		if diff := cmp.Diff(m, back, sameAddr); err != nil || diff != "" {
			t.Fatalf("written and read again: %v\n%s", err, diff)
		}
	})
}
