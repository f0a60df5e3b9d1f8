package translate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func mapping(real, seen string) translate.Mapping {
	return translate.Mapping{Real: prefix(real), Seen: prefix(seen)}
}

// config returns cluster a's side of a peering with b, which has two pod CIDRs: one overlaps, one does not.
func config() translate.Config {
	return translate.Config{
		Peer: "b",
		Remote: translate.Side{
			Pods:     []translate.Mapping{mapping("10.244.0.0/16", "10.71.0.0/16"), mapping("10.50.4.0/22", "10.50.4.0/22")},
			External: mapping("10.70.0.0/16", "10.81.0.0/16"),
		},
		Local: translate.Side{
			Pods:     []translate.Mapping{mapping("10.244.0.0/16", "10.72.0.0/16")},
			External: mapping("10.70.0.0/16", "10.82.0.0/16"),
		},
		Internal: prefix("10.80.0.0/16"),
	}
}

func newTranslator(t *testing.T, c translate.Config) translate.Translator {
	t.Helper()
	tr, err := translate.New(c)
	require.NoError(t, err)
	return tr
}

// translation is one of a Translator's four methods.
type translation = func(netip.Addr) (translate.Address, error)

func TestTranslations(t *testing.T) {
	tr := newTranslator(t, config())
	tests := []struct {
		name         string
		ask, reverse translation
		given, want  string
		kind         translate.Kind
	}{
		{"a pod of the peer whose range collides", tr.Import, tr.ImportedFrom, "10.244.3.7", "10.71.3.7", translate.Pod},
		{"the first address of a range", tr.Import, tr.ImportedFrom, "10.244.0.0", "10.71.0.0", translate.Pod},
		{"the last address of a range", tr.Import, tr.ImportedFrom, "10.244.255.255", "10.71.255.255", translate.Pod},
		{"a pod of the peer in its second range", tr.Import, tr.ImportedFrom, "10.50.7.255", "10.50.7.255", translate.Pod},
		{"a node of the peer", tr.Import, tr.ImportedFrom, "10.70.127.255", "10.81.127.255", translate.Node},
		{"an exposed host of the peer", tr.Import, tr.ImportedFrom, "10.70.128.0", "10.81.128.0", translate.Exposed},
		{"a pod of this cluster", tr.Export, tr.ExportedFrom, "10.244.3.7", "10.72.3.7", translate.Pod},
		{"a node of this cluster", tr.Export, tr.ExportedFrom, "10.80.0.9", "10.82.0.9", translate.Node},
		{"an exposed host of this cluster", tr.Export, tr.ExportedFrom, "10.70.200.1", "10.82.200.1", translate.Exposed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			given, want := netip.MustParseAddr(tt.given), netip.MustParseAddr(tt.want)
			got, err := tt.ask(given)
			if err != nil || got != (translate.Address{Given: given, Translated: want, Peer: "b", Kind: tt.kind}) {
				t.Errorf("%s: %+v, %v, want %s", given, got, err, want)
			}
			back, err := tt.reverse(want)
			if err != nil || back != (translate.Address{Given: want, Translated: given, Peer: "b", Kind: tt.kind}) {
				t.Errorf("%s back: %+v, %v, want %s", want, back, err, given)
			}
		})
	}
	t.Run("a node of this cluster by its external address", func(t *testing.T) {
		got, err := tr.Export(netip.MustParseAddr("10.70.0.9"))
		if err != nil || got.Kind != translate.Node || got.Translated != netip.MustParseAddr("10.82.0.9") {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestUnmapped(t *testing.T) {
	tr := newTranslator(t, config())
	for name, c := range map[string]struct {
		ask   translation
		given []string
	}{
		"import":        {tr.Import, []string{"10.243.255.255", "10.71.0.1", "10.50.8.0", "172.31.2.11", "10.80.0.9", "::ffff:10.244.0.1", "fd00::1"}},
		"imported from": {tr.ImportedFrom, []string{"10.244.0.1", "10.70.0.1", "10.82.0.1"}},
		// The network card of a node, and a gateway's overlay address, which is used only inside the cluster.
		"export":        {tr.Export, []string{"172.31.1.11", "10.80.128.1", "10.71.0.1", "10.50.4.1"}},
		"exported from": {tr.ExportedFrom, []string{"10.244.0.1", "10.71.0.1"}},
	} {
		for _, text := range append(c.given, "") {
			a, _ := netip.ParseAddr(text) // "": the invalid address
			var unmapped *translate.UnmappedError
			if got, err := c.ask(a); !errors.As(err, &unmapped) || unmapped.Address != a || !strings.Contains(err.Error(), `peer "b"`) {
				t.Errorf("%s of %s: %+v, %v", name, a, got, err)
			}
		}
	}
	if got, err := (translate.Translator{}).Import(netip.MustParseAddr("10.0.0.1")); err == nil {
		t.Errorf("the zero value translates to %+v", got)
	}
}

// TestLocalUnknown: without the peer's view of this cluster, Export fails and Import works.
func TestLocalUnknown(t *testing.T) {
	c := config()
	c.Local = translate.Side{}
	tr := newTranslator(t, c)
	var unknown *translate.LocalUnknownError
	for _, ask := range []translation{tr.Export, tr.ExportedFrom} {
		if got, err := ask(netip.MustParseAddr("10.244.0.1")); !errors.As(err, &unknown) || unknown.Peer != "b" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := tr.Import(netip.MustParseAddr("10.244.0.1")); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*translate.Config){
		"different lengths":          func(c *translate.Config) { c.Remote.Pods[0].Seen = prefix("10.71.0.0/17") },
		"different families":         func(c *translate.Config) { c.Remote.Pods[0].Seen = prefix("fd00::/16") },
		"no seen range":              func(c *translate.Config) { c.Remote.Pods[0].Seen = netip.Prefix{} },
		"host bits":                  func(c *translate.Config) { c.Local.Pods[0].Real = netip.MustParsePrefix("10.244.0.1/16") },
		"overlapping real ranges":    func(c *translate.Config) { c.Remote.Pods[1].Real = prefix("10.244.4.0/22") },
		"overlapping seen ranges":    func(c *translate.Config) { c.Remote.Pods[1].Seen = prefix("10.81.4.0/22") },
		"no external CIDR":           func(c *translate.Config) { c.Remote.External = translate.Mapping{} },
		"a single external address":  func(c *translate.Config) { c.Remote.External = mapping("10.70.0.1/32", "10.70.0.1/32") },
		"half of the local side":     func(c *translate.Config) { c.Local.External = translate.Mapping{} },
		"an internal CIDR too small": func(c *translate.Config) { c.Internal = prefix("10.80.0.0/17") },
		"an internal CIDR in use":    func(c *translate.Config) { c.Internal = prefix("10.244.0.0/16") },
	} {
		c := config()
		spoil(&c)
		if tr, err := translate.New(c); err == nil {
			t.Errorf("%s: accepted: %+v", name, tr)
		}
	}
}

// TestTranslationKeepsHostBits translates random addresses of random ranges, and back.
func TestTranslationKeepsHostBits(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	v4 := func() netip.Addr {
		n := random.Uint32()
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for range 2000 {
		bits, a := 1+random.IntN(32), v4()
		real, seen := netip.PrefixFrom(a, bits).Masked(), netip.PrefixFrom(v4(), bits).Masked()
		external := mapping("fd00:70::/64", "fd00:71::/64") // of the other family, so that it never overlaps
		tr := newTranslator(t, translate.Config{Remote: translate.Side{Pods: []translate.Mapping{{Real: real, Seen: seen}}, External: external}})
		there, err := tr.Import(a)
		if err != nil || !seen.Contains(there.Translated) {
			t.Fatalf("%s of %s is %s in %s, %v", a, real, there.Translated, seen, err)
		}
		if back, err := tr.ImportedFrom(there.Translated); err != nil || back.Translated != a {
			t.Fatalf("%s came back as %s, %v", a, back.Translated, err)
		}
		before, after := a.As4(), there.Translated.As4()
		for i := bits; i < 32; i++ {
			if mask := byte(0x80) >> (i % 8); before[i/8]&mask != after[i/8]&mask {
				t.Fatalf("%s of %s became %s: another host", a, real, there.Translated)
			}
		}
	}
}

// BenchmarkWhose searches an address in the ranges of 2,000 peers.
func BenchmarkWhose(b *testing.B) {
	translators := make([]translate.Translator, 2000)
	for i := range translators {
		at := func(first byte) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{first, byte(i >> 8), byte(i), 0}), 24)
		}
		var err error
		translators[i], err = translate.New(translate.Config{Peer: fmt.Sprint("p", i), Remote: translate.Side{
			Pods:     []translate.Mapping{{Real: prefix("10.244.0.0/24"), Seen: at(11)}},
			External: translate.Mapping{Real: prefix("10.70.0.0/24"), Seen: at(12)},
		}})
		require.NoError(b, err)
	}
	c, err := translate.NewCluster(translators...)
	require.NoError(b, err)
	a := netip.MustParseAddr("12.5.3.200")
	for b.Loop() {
		_, err := c.Whose(a)
		require.NoError(b, err)
	}
}

// TestExposedHosts: exposed hosts are translated by their own addresses and by their external ones.
func TestExposedHosts(t *testing.T) {
	c := config()
	host, second := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8")
	c.Exposed = map[netip.Addr]netip.Addr{host: netip.MustParseAddr("10.70.128.1"), second: netip.MustParseAddr("10.70.128.2")}
	tr := newTranslator(t, c)
	for given, want := range map[string]string{"192.0.2.7": "10.82.128.1", "10.70.128.1": "10.82.128.1", "192.0.2.8": "10.82.128.2"} {
		got, err := tr.Export(netip.MustParseAddr(given))
		if err != nil || got.Translated.String() != want || got.Given.String() != given || got.Kind != translate.Exposed || got.Peer != "b" {
			t.Errorf("export %s: %+v, %v, want %s", given, got, err, want)
		}
	}
	for given, want := range map[string]string{"10.82.128.1": "192.0.2.7", "10.82.128.3": "10.70.128.3"} {
		if got, err := tr.ExportedFrom(netip.MustParseAddr(given)); err != nil || got.Translated.String() != want || got.Kind != translate.Exposed {
			t.Errorf("exported from %s: %+v, %v, want %s", given, got, err, want)
		}
	}
	var unmapped *translate.UnmappedError
	if got, err := tr.Export(netip.MustParseAddr("192.0.2.9")); !errors.As(err, &unmapped) {
		t.Errorf("a host that is not exposed: %+v, %v", got, err)
	}
	if got, err := tr.Export(netip.Addr{}); !errors.As(err, &unmapped) {
		t.Errorf("no address: %+v, %v", got, err)
	}
	c.Exposed[netip.MustParseAddr("10.244.1.7")] = netip.MustParseAddr("10.70.128.3")
	if got, err := newTranslator(t, c).Export(netip.MustParseAddr("10.244.1.7")); err != nil || got.Kind != translate.Pod {
		t.Errorf("a host of a pod's address: %+v, %v", got, err)
	}
	delete(c.Exposed, host) // the translator has a copy
	if _, err := tr.Export(host); err != nil {
		t.Error(err)
	}
	for _, external := range []string{"10.70.0.1", "10.71.128.1", "10.70.128.2"} {
		c.Exposed = map[netip.Addr]netip.Addr{host: netip.MustParseAddr(external), second: netip.MustParseAddr("10.70.128.2")}
		if _, err := translate.New(c); err == nil {
			t.Errorf("a host exposed as %s: accepted", external)
		}
	}
}
