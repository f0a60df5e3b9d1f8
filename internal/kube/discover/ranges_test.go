package discover

import (
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

func TestCoveringAndWidened(t *testing.T) {
	for _, c := range []struct {
		ranges, taken []string
		cover, wide   string
	}{
		{[]string{"10.244.1.0/24"}, nil, "10.244.1.0/24", "10.244.0.0/16"},
		{[]string{"10.244.1.0/24", "10.244.2.0/24"}, nil, "10.244.0.0/22", "10.244.0.0/16"},
		{[]string{"10.4.0.0/24", "10.5.255.0/24"}, nil, "10.4.0.0/15", "10.4.0.0/15"},
		{[]string{"10.4.0.0/24"}, []string{"10.4.128.0/20"}, "10.4.0.0/24", "10.4.0.0/17"},
		{[]string{"10.4.0.0/24"}, []string{"10.4.1.0/24"}, "10.4.0.0/24", "10.4.0.0/24"},
		{[]string{"10.4.0.0/24", "172.16.0.0/24"}, nil, "0.0.0.0/0", "0.0.0.0/0"},
	} {
		cover := covering(parsed.Prefixes(c.ranges...))
		wide := widened(cover, parsed.Prefixes(c.taken...))
		if cover.String() != c.cover || wide.String() != c.wide {
			t.Errorf("%v beside %v: %s, widened %s, want %s and %s", c.ranges, c.taken, cover, wide, c.cover, c.wide)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	got, skipped := parsePrefixes([]string{"10.1.0.0/17,10.1.128.0/17", " 10.9.1.2/16\n", "fd00::/64", "ten"})
	if want := parsed.Prefixes("10.1.0.0/16", "10.9.0.0/16"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"skipping fd00::/64: IPv4 only", `"ten" is not an address range`}; !slices.Equal(skipped, want) {
		t.Errorf("left out %q", skipped)
	}
}

// FuzzParsePrefixes: for any text, the result has masked IPv4 prefixes that do not contain each other.
func FuzzParsePrefixes(f *testing.F) {
	f.Add("10.0.0.0/8, 10.1.2.3/16")
	f.Add("::/0,0.0.0.0/0")
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := parsePrefixes([]string{text})
		for i, p := range all {
			if !p.Addr().Is4() || p != p.Masked() {
				t.Errorf("%q gives %s", text, p)
			}
			if cidr.Overlaps(p, all[i+1:]) {
				t.Errorf("%q gives overlapping %v", text, all)
			}
		}
	})
}

func TestFlagValue(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"kube-proxy", "--cluster-cidr=10.0.0.0/8"}, "10.0.0.0/8"},
		{[]string{"server", "--cluster-cidr", "10.0.0.0/8"}, "10.0.0.0/8"},
		{[]string{"--cluster-cidr='10.0.0.0/8'"}, "10.0.0.0/8"},
		{[]string{"--cluster-cidr-x=1", "--cluster-cidr"}, ""},
	} {
		if got := flagValue(c.words, "--cluster-cidr"); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}
