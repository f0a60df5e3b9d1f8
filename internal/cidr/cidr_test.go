package cidr_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

func TestSwap(t *testing.T) {
	for _, test := range []struct{ address, into, want string }{
		{"10.80.0.7", "10.70.0.0/17", "10.70.0.7"},
		{"10.80.127.255", "10.70.0.0/17", "10.70.127.255"},
		{"10.244.1.5", "10.11.0.0/16", "10.11.1.5"},
		{"10.244.1.5", "192.168.7.32/27", "192.168.7.37"},
		{"10.244.1.5", "192.168.7.1/32", "192.168.7.1"},
		{"10.244.1.5", "0.0.0.0/0", "10.244.1.5"},
	} {
		got := cidr.Swap(netip.MustParseAddr(test.address), netip.MustParsePrefix(test.into))
		if got.String() != test.want {
			t.Errorf("%s into %s: %s, want %s", test.address, test.into, got, test.want)
		}
	}
}

func TestOutermost(t *testing.T) {
	for given, want := range map[string]string{
		"":                                    "",
		"10.2.0.0/16 10.1.0.0/24":             "10.1.0.0/24 10.2.0.0/16",
		"10.1.7.0/24 10.1.0.5/16 10.1.0.0/16": "10.1.0.0/16",
		"10.0.0.0/24 10.0.1.0/24":             "10.0.0.0/24 10.0.1.0/24",
		"0.0.0.0/0 255.255.255.255/32":        "0.0.0.0/0",
	} {
		if got := text(cidr.Outermost(prefixes(given))); got != want {
			t.Errorf("of %q: %q, want %q", given, got, want)
		}
	}
}

func TestHalves(t *testing.T) {
	for given, want := range map[string]string{
		"10.80.0.0/16": "10.80.0.0/17 10.80.128.0/17",
		"10.80.9.9/31": "10.80.9.8/32 10.80.9.9/32",
		"0.0.0.0/0":    "0.0.0.0/1 128.0.0.0/1",
		"fd00::/64":    "fd00::/65 fd00::8000:0:0:0/65",
	} {
		p := netip.MustParsePrefix(given)
		lower, upper := cidr.Halves(p)
		if got := text([]netip.Prefix{lower, upper}); got != want || cidr.Lower(p) != lower {
			t.Errorf("of %s: %q, want %q", given, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, given := range []string{"0.0.0.0", "10.1.2.3", "255.255.255.255"} {
		if a := netip.MustParseAddr(given); cidr.Address(cidr.Number(a)) != a {
			t.Errorf("%s is %d, and back %s", a, cidr.Number(a), cidr.Address(cidr.Number(a)))
		}
	}
	if got := cidr.Offset(netip.MustParsePrefix("10.80.0.9/16"), netip.MustParseAddr("10.80.128.1")); got != 0x8001 {
		t.Errorf("offset %#x", got)
	}
	if got, ok := cidr.Nth(cidr.Lower(netip.MustParsePrefix("10.80.0.9/32")), 1); ok {
		t.Errorf("half of a single address has %s", got)
	}
	for text, want := range map[string]map[uint32]string{
		"10.80.0.9/30": {0: "10.80.0.8", 3: "10.80.0.11", 4: "", 1<<32 - 1: ""},
		"0.0.0.0/0":    {1<<32 - 1: "255.255.255.255"},
		"fd00::/64":    {1: ""},
	} {
		for n, want := range want {
			if got, ok := cidr.Nth(netip.MustParsePrefix(text), n); ok != (want != "") || ok && got.String() != want {
				t.Errorf("number %d of %s: %v, %v, want %q", n, text, got, ok, want)
			}
		}
	}
}

func prefixes(words string) []netip.Prefix {
	var all []netip.Prefix
	for _, word := range strings.Fields(words) {
		all = append(all, netip.MustParsePrefix(word))
	}
	return all
}

func text(ranges []netip.Prefix) string { return strings.Trim(fmt.Sprint(ranges), "[]") }

func TestWithout(t *testing.T) {
	for _, c := range []struct{ p, others, want string }{
		{"10.0.0.0/8", "", "10.0.0.0/8"},
		{"10.0.0.0/8", "10.0.0.0/8", ""},
		{"10.1.0.0/16", "10.0.0.0/8", ""},
		{"10.12.0.0/15", "10.12.0.0/16", "10.13.0.0/16"},
		{"10.0.0.0/30", "10.0.0.1/32 192.0.2.0/24", "10.0.0.0/32 10.0.0.2/31"},
		{"10.0.0.0/31", "10.0.0.0/32 10.0.0.1/32", ""},
		{"0.0.0.0/0", "128.0.0.0/1", "0.0.0.0/1"},
	} {
		got := cidr.Without(netip.MustParsePrefix(c.p), parsed.Prefixes(strings.Fields(c.others)...))
		if !slices.Equal(got, parsed.Prefixes(strings.Fields(c.want)...)) {
			t.Errorf("%s without %s: %v, want %s", c.p, c.others, got, c.want)
		}
	}
}
