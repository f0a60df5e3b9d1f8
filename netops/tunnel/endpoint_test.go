package tunnel

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sameEndpoint = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

func endpoints(texts ...string) (out []netip.AddrPort) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddrPort(s))
	}
	return out
}

func TestResolve(t *testing.T) {
	var asked []string
	find := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		asked = append(asked, host)
		if host != "gw.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("192.0.2.7")}, nil
	}
	got, err := resolve(t.Context(), find, []string{
		"192.0.2.1:51840", "gone.example:51840", "gw.example:51840", "[::ffff:192.0.2.9]:51840", "192.0.2.1", "192.0.2.1:0",
	})
	want := endpoints("192.0.2.1:51840", "192.0.2.7:51840", "192.0.2.9:51840", "[2001:db8::1]:51840")
	if diff := cmp.Diff(want, got, sameEndpoint); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gone.example", "gw.example"}, asked); diff != "" {
		t.Errorf("names asked (-want +got):\n%s", diff)
	}
	for _, part := range []string{`"gone.example:51840": no such host`, `"192.0.2.1": `, `"192.0.2.1:0": port "0"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not tell %s", err, part)
		}
	}
}

func TestAfterGoesRound(t *testing.T) {
	all := endpoints("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1")
	for _, c := range []struct{ current, want string }{
		{"192.0.2.1:1", "192.0.2.2:1"}, {"192.0.2.3:1", "192.0.2.1:1"}, {"203.0.113.1:1", "192.0.2.1:1"},
	} {
		if got := after(netip.MustParseAddrPort(c.current), all); got.String() != c.want {
			t.Errorf("after %s: %v, want %s", c.current, got, c.want)
		}
	}
	if got := after(all[0], nil); got.IsValid() {
		t.Errorf("without candidates: %v", got)
	}
}

// TestApart: a tunnel goes where no other one is, if there is such a place.
func TestApart(t *testing.T) {
	all := endpoints("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1")
	for _, c := range []struct {
		current int
		taken   []int
		want    []netip.AddrPort
	}{
		{0, nil, all},
		{0, []int{1}, endpoints("192.0.2.1:1", "192.0.2.3:1")},
		{0, []int{0, 1}, endpoints("192.0.2.1:1", "192.0.2.3:1")},
		{2, []int{0}, endpoints("192.0.2.2:1", "192.0.2.3:1")},
		{0, []int{1, 2}, all},
		{0, []int{0, 1, 2}, all},
	} {
		var taken []netip.Addr
		for _, i := range c.taken {
			taken = append(taken, all[i].Addr())
		}
		if diff := cmp.Diff(c.want, apart(all, all[c.current], taken), sameEndpoint); diff != "" {
			t.Errorf("at %d, %v taken (-want +got):\n%s", c.current, c.taken, diff)
		}
	}
	if got := apart(nil, all[0], nil); len(got) > 0 {
		t.Errorf("without candidates: %v", got)
	}
}

// TestAlternate: whichever of both are wrong, one that is right comes soon.
func TestAlternate(t *testing.T) {
	a := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }
	for _, c := range []struct {
		candidates []netip.AddrPort
		others     []netip.Addr
		want       []netip.AddrPort
	}{
		{endpoints("192.0.2.1:1", "192.0.2.2:1"), nil, endpoints("192.0.2.1:1", "192.0.2.2:1")},
		{endpoints("192.0.2.1:1", "192.0.2.2:1"), []netip.Addr{a(2), a(3)}, endpoints("192.0.2.1:1", "192.0.2.3:1", "192.0.2.2:1")},
		{endpoints("192.0.2.1:1"), []netip.Addr{a(3), a(4), a(5)}, endpoints("192.0.2.1:1", "192.0.2.3:1", "192.0.2.4:1", "192.0.2.5:1")},
		{endpoints("192.0.2.1:7", "192.0.2.2:7", "192.0.2.4:7"), []netip.Addr{a(3)}, endpoints("192.0.2.1:7", "192.0.2.3:7", "192.0.2.2:7", "192.0.2.4:7")},
		{nil, []netip.Addr{a(3)}, nil}, // no port is known, and no endpoint of the user's
	} {
		if diff := cmp.Diff(c.want, alternate(c.candidates, c.others), sameEndpoint); diff != "" {
			t.Errorf("%v and %v (-want +got):\n%s", c.candidates, c.others, diff)
		}
	}
}
