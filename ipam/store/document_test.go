package store

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

var prefix = netip.MustParsePrefix

// installed returns a registry with a reservation of every form.
func installed(t testing.TB) *ipam.Registry {
	t.Helper()
	b := ipam.Peering("b")
	r, err := ipam.Restore(append(ipam.DefaultPools(), prefix("fd00:10::/32")), []ipam.Reservation{
		{Range: prefix("10.244.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR, Shared: true},
		{Range: prefix("fd00:244::/56"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR, Shared: true},
		{Range: prefix("10.96.0.0/12"), Owner: ipam.Cluster, Purpose: ipam.ServiceCIDR, Shared: true},
		{Range: prefix("172.18.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.NodeNetwork, Shared: true},
		{Range: prefix("192.168.1.0/24"), Owner: ipam.Cluster, Purpose: ipam.Reserved, Shared: true},
		{Range: prefix("10.70.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.ExternalCIDR},
		{Range: prefix("10.80.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.InternalCIDR},
		{Range: prefix("172.18.0.0/16"), Owner: b, Purpose: ipam.PeerUnderlay, Shared: true},
		{Range: prefix("10.71.0.0/16"), Owner: b, Purpose: ipam.PeerPods, Real: prefix("10.244.0.0/16")},
		{Range: prefix("10.81.0.0/16"), Owner: b, Purpose: ipam.PeerExternal, Real: prefix("10.70.0.0/16")},
		{Range: prefix("10.80.128.8/29"), Owner: b, Purpose: ipam.Gateways},
		{Range: prefix("10.70.128.1/32"), Owner: b, Purpose: ipam.ExposedHost, Real: prefix("192.168.7.8/32")},
	})
	require.NoError(t, err)
	return r
}

func TestEncodeGolden(t *testing.T) {
	empty, err := ipam.New()
	require.NoError(t, err)
	for name, r := range map[string]*ipam.Registry{"empty": empty, "installed": installed(t)} {
		t.Run(name, func(t *testing.T) {
			decoded, err := Decode(golden.Check(t, name+".golden", Encode(r)))
			require.NoError(t, err)
			assert.Equal(t, "reservations", r.List(), decoded.List(), comparePrefixes)
			if !slices.Equal(r.Pools(), decoded.Pools()) {
				t.Errorf("pools %s became %s on the way through the text", r.Pools(), decoded.Pools())
			}
		})
	}
}

// TestDecodeAnyYAML: documents edited by hand can be decoded.
func TestDecodeAnyYAML(t *testing.T) {
	text := Encode(installed(t))
	for name, change := range map[string]func(string) string{
		"comment":      func(s string) string { return "# by hand\n" + s },
		"no quotes":    func(s string) string { return strings.Replace(s, `"10.0.0.0/8"`, "10.0.0.0/8", 1) },
		"escape":       func(s string) string { return strings.Replace(s, `"10.0.0.0/8"`, `"10.0.0.0\x2f8"`, 1) },
		"indentation":  func(s string) string { return strings.ReplaceAll(s, "\n- ", "\n  - ") },
		"no last line": func(s string) string { return strings.TrimSuffix(s, "\n") },
	} {
		changed := change(text)
		if r, err := Decode(changed); err != nil || Encode(r) != text || changed == text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// comparePrefixes lets cmp compare the unexported fields of package netip.
var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

// damaged are documents that Decode must reject, with a part of the error.
var damaged = map[string]struct{ text, reason string }{
	"empty":            {"", "schema version 0, this binary knows 1"},
	"no YAML":          {"\tversion: 1", "damaged document"},
	"cut off":          {"version: 1\nreservations:\n- \"10.96.0.0/12 clus", "damaged document"},
	"newer version":    {"version: 2\nranges: {}\n", "schema version 2, this binary knows 1"},
	"doubled field":    {"version: 1\npools: []\npools: []\n", `duplicate field "pools"`},
	"bad pool":         {"version: 1\npools:\n- \"10.0.0.0\"\n", `pool "10.0.0.0"`},
	"overlapping pool": {"version: 1\npools:\n- \"10.0.0.0/8\"\n- \"10.1.0.0/16\"\n", "overlaps pool 10.0.0.0/8"},
	"too few words":    only("10.96.0.0/12 cluster"), // the error contains the form
	"no range":         only("10.96.0.0 cluster service-cidr"),
	"host bits":        only("10.96.0.1/12 cluster service-cidr"),
	"unknown owner":    only("10.96.0.0/12 them service-cidr"),
	"unknown purpose":  only("10.96.0.0/12 cluster cidr"),
	"unknown word":     only("10.96.0.0/12 cluster service-cidr private"),
	"words swapped":    only("10.96.0.0/12 cluster service-cidr shared real=10.0.0.0/12"),
	"bad real range":   only("10.96.0.0/12 cluster service-cidr real=there"),
	"no place":         only("10.80.128.8/29 peering/b gateways"),
	"two numbers":      only("10.80.128.0/28 peering/b gateways"),
	"conflict": {
		"version: 1\nreservations:\n- \"10.244.0.0/16 cluster pod-cidr\"\n- \"10.244.0.0/17 peering/b peer-pods\"\n",
		`reserve 10.244.0.0/17 for peering "b" pods: conflict with pod CIDR 10.244.0.0/16`,
	},
}

// only returns a document with that one reservation.
func only(text string) struct{ text, reason string } {
	return struct{ text, reason string }{fmt.Sprintf("version: 1\nreservations:\n- %q\n", text), "damaged document: "}
}

func TestDecodeRefusesDamage(t *testing.T) {
	for name, c := range damaged {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(c.text); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(installed(f)))
	for _, c := range damaged {
		f.Add(c.text)
	}
	f.Add("version: 1\nreservations: [" + strings.Repeat("x, ", 1000) + "]")
	f.Add("version: 1\npools:\n" + strings.Repeat("- 10.0.0.0/8\n", 10_000))
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Decode(text)
		runtime.ReadMemStats(&after)
		if n := int(after.TotalAlloc - before.TotalAlloc); n > 64*max(len(text), 4<<10) {
			t.Errorf("%d bytes allocated for %d bytes", n, len(text))
		}
		if err != nil {
			return
		}
		again, err := Decode(Encode(r))
		if err != nil {
			t.Fatalf("what was decoded is refused when encoded: %v\n%s", err, Encode(r))
		}
		assert.Equal(t, "reservations read again", r.List(), again.List(), comparePrefixes)
	})
}

func BenchmarkEncodeDecode(b *testing.B) {
	held := make([]ipam.Reservation, 10000)
	for i := range held {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0})
		held[i] = ipam.Reservation{
			Range: netip.PrefixFrom(a, 24), Owner: ipam.Peering(fmt.Sprintf("b%d", i)), Purpose: ipam.PeerPods, Real: prefix("172.16.0.0/24"),
		}
	}
	r, err := ipam.Restore(ipam.DefaultPools(), held)
	require.NoError(b, err)
	for b.Loop() {
		text := Encode(r)
		_, err := Decode(text)
		require.NoError(b, err)
		b.SetBytes(int64(len(text)))
	}
}
