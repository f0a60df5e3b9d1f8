package translate_test

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

// other returns the config of a peering with c, whose pods have the same addresses as those of b.
func other() translate.Config {
	return translate.Config{Peer: "c", Remote: translate.Side{
		Pods:     []translate.Mapping{mapping("10.244.0.0/16", "10.73.0.0/16")},
		External: mapping("10.70.0.0/16", "10.83.0.0/16"),
	}}
}

func TestWhose(t *testing.T) {
	c, err := translate.NewCluster(newTranslator(t, other()), newTranslator(t, config()))
	require.NoError(t, err)
	if got := c.Peers(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("peers %v", got)
	}
	for given, want := range map[string]translate.Address{
		"10.71.0.5":   {Translated: netip.MustParseAddr("10.244.0.5"), Peer: "b", Kind: translate.Pod},
		"10.73.0.5":   {Translated: netip.MustParseAddr("10.244.0.5"), Peer: "c", Kind: translate.Pod},
		"10.81.0.1":   {Translated: netip.MustParseAddr("10.70.0.1"), Peer: "b", Kind: translate.Node},
		"10.83.255.1": {Translated: netip.MustParseAddr("10.70.255.1"), Peer: "c", Kind: translate.Exposed},
	} {
		want.Given = netip.MustParseAddr(given)
		if got, err := c.Whose(want.Given); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", given, got, err, want)
		}
	}
	var unmapped *translate.UnmappedError
	for _, own := range []string{"10.244.0.5", "10.80.0.1", "10.72.0.5", "0.0.0.1", "255.255.255.255"} {
		if got, err := c.Whose(netip.MustParseAddr(own)); !errors.As(err, &unmapped) {
			t.Errorf("%s: %+v, %v", own, got, err)
		}
	}
	var unknown *translate.UnknownPeerError
	if _, err := c.Peer("d"); !errors.As(err, &unknown) || unknown.Peer != "d" {
		t.Errorf("peer d: %v", err)
	}
	if tr, err := c.Peer("c"); err != nil || tr.Peer() != "c" {
		t.Errorf("peer c: %v, %v", tr, err)
	}
}

func TestNewClusterRefuses(t *testing.T) {
	b := newTranslator(t, config())
	if _, err := translate.NewCluster(b, b); err == nil {
		t.Error("two peers of one name: accepted")
	}
	c := other()
	c.Remote.Pods[0].Seen = prefix("10.81.0.0/16") // b's nodes
	if _, err := translate.NewCluster(b, newTranslator(t, c)); err == nil {
		t.Error("two peers reached by the same addresses: accepted")
	}
}

// records returns the records in testdata.
func records(t testing.TB) (fabric, peering string) {
	t.Helper()
	texts := make([]string, 2)
	for i, file := range []string{"testdata/fabric.yaml", "testdata/peering-b.yaml"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[i] = string(text)
	}
	return texts[0], texts[1]
}

func TestDecode(t *testing.T) {
	fabric, peering := records(t)
	const later = "later: {some: 1}\n" // a field of a later release
	c, err := translate.Decode(fabric+later, map[string]string{"peering-b": peering + later})
	require.NoError(t, err)
	assert.NoError(t, c.Damage())
	tr, err := c.Peer("b")
	require.NoError(t, err)
	for _, q := range []struct {
		ask         translation
		given, want string
	}{
		{tr.Import, "10.244.1.7", "10.71.1.7"},
		{tr.Import, "10.70.0.3", "10.81.0.3"},
		{tr.Export, "10.244.1.7", "10.72.1.7"},
		{tr.Export, "10.80.0.3", "10.82.0.3"},
		{tr.Export, "192.0.2.17", "10.82.128.1"},
		{tr.ExportedFrom, "10.82.128.1", "192.0.2.17"},
		{c.Whose, "10.71.1.7", "10.244.1.7"},
	} {
		if got, err := q.ask(netip.MustParseAddr(q.given)); err != nil || got.Translated.String() != q.want {
			t.Errorf("%s: %s, %v, want %s", q.given, got.Translated, err, q.want)
		}
	}
	if c, err := translate.Decode(fabric, nil); err != nil || len(c.Peers()) != 0 {
		t.Errorf("without a peering: %v, %v", c.Peers(), err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	fabric, peering := records(t)
	same := strings.Replace(peering, "name: b", "name: c", 1) // with the same ranges
	for name, c := range map[string]struct{ fabric, want string }{
		"no fabric":          {"", "read ConfigMap fabric: "},
		"peering as fabric":  {peering, "read ConfigMap fabric: "},
		"peers in one place": {fabric, "overlaps"},
	} {
		peerings := map[string]string{"peering-b": peering, "peering-c": same}
		if _, err := translate.Decode(c.fabric, peerings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

// TestDamage: a record that cannot be read is an error for its own peering only. Others are translated as before.
func TestDamage(t *testing.T) {
	fabric, peering := records(t)
	whole := strings.NewReplacer("\nname: b", "\nname: c", "10.81.0.0/16", "10.83.0.0/16", "10.71.0.0/16", "10.73.0.0/16").Replace(peering)
	for name, c := range map[string]struct{ old, replaced, want string }{
		"unknown version": {"version: 1", "version: 7", "schema version 7"},
		"field twice":     {"version: 1", "version: 1\nversion: 1", "duplicate field"},
		"clashing ranges": {"seen: 10.81.0.0/16", "seen: 10.71.0.0/16", "overlaps"},
		"other lengths":   {"seen: 10.81.0.0/16", "seen: 10.81.0.0/17", "lengths differ"},
		"misplaced host":  {"10.70.128.1", "10.70.0.1", "10.70.0.1"},
		"of another peer": {"name: b", "name: d", `peering "d"`},
	} {
		t.Run(name, func(t *testing.T) {
			spoilt := strings.Replace(peering, c.old, c.replaced, 1)
			got, err := translate.Decode(fabric, map[string]string{"peering-b": spoilt, "peering-c": whole})
			require.NoError(t, err)
			_, ofPeer := got.Peer("b")
			_, ofAddress := got.Whose(netip.MustParseAddr("10.71.1.7"))
			for _, err := range []error{ofPeer, ofAddress, got.Damage()} {
				damaged, ok := errors.AsType[*translate.DamagedError](err)
				if !ok || damaged.Peer != "b" || !strings.HasPrefix(err.Error(), "read ConfigMap peering-b: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
			}
			tr, err := got.Peer("c")
			require.NoError(t, err)
			if a, err := tr.Import(netip.MustParseAddr("10.244.1.7")); err != nil || a.Translated.String() != "10.73.1.7" {
				t.Errorf("the other peer: %+v, %v", a, err)
			}
			if a, err := got.Whose(netip.MustParseAddr("10.73.1.7")); err != nil || a.Peer != "c" || !slices.Equal(got.Peers(), []string{"c"}) {
				t.Errorf("whose: %+v, %v; peers %s", a, err, got.Peers())
			}
		})
	}
}
