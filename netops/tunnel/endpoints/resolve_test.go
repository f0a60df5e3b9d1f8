package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/assert"
)

var sameEndpoint = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

func parse(texts ...string) (out []netip.AddrPort) {
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
	got, err := Resolve(t.Context(), find, []string{
		"192.0.2.1:51840", "gone.example:51840", "gw.example:51840", "[::ffff:192.0.2.9]:51840", "192.0.2.1", "192.0.2.1:0",
	})
	want := parse("192.0.2.1:51840", "192.0.2.7:51840", "192.0.2.9:51840", "[2001:db8::1]:51840")
	assert.Equal(t, "endpoints", want, got, sameEndpoint)
	assert.Equal(t, "names asked", []string{"gone.example", "gw.example"}, asked)
	for _, part := range []string{`"gone.example:51840": no such host`, `"192.0.2.1": `, `"192.0.2.1:0": port "0"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not contain %s", err, part)
		}
	}
}

func TestAfterGoesRound(t *testing.T) {
	all := parse("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1")
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

// TestFreeFirst: a tunnel prefers addresses that no other tunnel uses, if there are any.
func TestFreeFirst(t *testing.T) {
	all := parse("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1")
	for _, c := range []struct {
		current int
		taken   []netip.Addr
		next    netip.AddrPort
	}{
		{0, nil, all[1]},
		{0, []netip.Addr{all[1].Addr()}, all[2]},
		{0, []netip.Addr{all[0].Addr()}, all[1]},
		{2, []netip.Addr{all[0].Addr()}, all[0]},
		{2, []netip.Addr{all[2].Addr()}, all[0]},
		{0, []netip.Addr{all[1].Addr(), all[2].Addr()}, all[1]},
	} {
		if got := after(all[c.current], freeFirst(all, c.taken)); got != c.next {
			t.Errorf("after %s, %v taken: %s, want %s", all[c.current], c.taken, got, c.next)
		}
	}
}

// TestOneOfManyAnswers: if a single address of a server answers, all tunnels of a gateway find it, each in at most as
// many renewals as there are addresses.
func TestOneOfManyAnswers(t *testing.T) {
	for n := 1; n <= 8; n++ {
		var all []netip.AddrPort
		for i := range n {
			all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1))
		}
		for good := range n {
			at := []netip.AddrPort{all[0], all[1%n], all[2%n]} // of three tunnels
			for range n {
				for i := range at {
					var taken []netip.Addr
					for j, a := range at {
						if j != i {
							taken = append(taken, a.Addr())
						}
					}
					if at[i] != all[good] {
						at[i] = after(at[i], freeFirst(all, taken))
					}
				}
			}
			if slices.ContainsFunc(at, func(a netip.AddrPort) bool { return a != all[good] }) {
				t.Errorf("%d addresses, of which %s answers: tunnels at %v", n, all[good], at)
			}
		}
	}
}

// TestAlternate: if one of the lists is wrong, an address of the other follows soon.
func TestAlternate(t *testing.T) {
	a := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }
	for _, c := range []struct {
		candidates []netip.AddrPort
		others     []netip.Addr
		want       []netip.AddrPort
	}{
		{parse("192.0.2.1:1", "192.0.2.2:1"), nil, parse("192.0.2.1:1", "192.0.2.2:1")},
		{parse("192.0.2.1:1", "192.0.2.2:1"), []netip.Addr{a(2), a(3)}, parse("192.0.2.1:1", "192.0.2.3:1", "192.0.2.2:1")},
		{parse("192.0.2.1:1"), []netip.Addr{a(3), a(4), a(5)}, parse("192.0.2.1:1", "192.0.2.3:1", "192.0.2.4:1", "192.0.2.5:1")},
		{parse("192.0.2.1:7", "192.0.2.2:7", "192.0.2.4:7"), []netip.Addr{a(3)}, parse("192.0.2.1:7", "192.0.2.3:7", "192.0.2.2:7", "192.0.2.4:7")},
		{nil, []netip.Addr{a(3)}, nil}, // without a candidate the port is not known
	} {
		assert.Equal(t, fmt.Sprintf("%v and %v", c.candidates, c.others), c.want, alternate(c.candidates, c.others), sameEndpoint)
	}
}
