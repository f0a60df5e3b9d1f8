package plain

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/assert"
)

func TestFollow(t *testing.T) {
	at := netip.MustParseAddrPort
	a, b := at("192.0.2.7:1"), at("192.0.2.7:2")
	for name, test := range map[string]struct {
		current netip.AddrPort
		senders []Sender
		want    netip.AddrPort
	}{
		"no sender":              {a, nil, a},
		"the first one":          {netip.AddrPort{}, []Sender{{a, 0}}, a},
		"both send":              {a, []Sender{{a, 300 * time.Millisecond}, {b, 0}}, a},
		"it is silent":           {a, []Sender{{a, 401 * time.Millisecond}, {b, 0}}, b},
		"both are silent":        {a, []Sender{{a, 2 * time.Second}, {b, 1800 * time.Millisecond}}, a},
		"it has expired":         {a, []Sender{{b, 2 * time.Second}}, b},
		"it is the only sender":  {b, []Sender{{b, 2 * time.Second}}, b},
		"the later one of two":   {netip.AddrPort{}, []Sender{{a, time.Second}, {b, 0}}, b},
		"the later one is first": {netip.AddrPort{}, []Sender{{b, 0}, {a, time.Second}}, b},
	} {
		if got := follow(test.current, test.senders); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestAnswerable: a server sends neither to port 0, nor to a public address unless the user allows it.
func TestAnswerable(t *testing.T) {
	none, private, public := netip.MustParseAddrPort("10.9.0.2:0"), netip.MustParseAddrPort("10.9.0.2:1"), netip.MustParseAddrPort("8.8.8.8:1")
	for name, c := range map[string]struct {
		only bool
		want []Sender
	}{
		"private": {true, []Sender{{From: private}}},
		"public":  {false, []Sender{{From: private}, {From: public}}},
	} {
		got := answerable([]Sender{{From: none}, {From: private}, {From: public}}, c.only)
		assert.Equal(t, name, c.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))
	}
}

// TestVNI: it has 24 bits, is not 0, and depends on the keys.
func TestVNI(t *testing.T) {
	for first, want := range map[byte]uint32{0: 1, 1: 0x010000, 0xff: 0xff0000} {
		if got := VNI(func(string) [32]byte { return [32]byte{first} }); got != want {
			t.Errorf("key that begins with %d: %#x, want %#x", first, got, want)
		}
	}
}
