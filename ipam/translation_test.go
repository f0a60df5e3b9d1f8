package ipam

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func TestTranslator(t *testing.T) {
	tr, err := NewTranslator(
		Mapping{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")},
		Mapping{Real: prefix("10.70.0.0/16"), Seen: prefix("10.70.0.0/16")},
		Mapping{Real: prefix("192.168.9.64/27"), Seen: prefix("10.80.3.128/27")},
		Mapping{Real: prefix("192.168.1.2/32"), Seen: prefix("10.90.0.1/32")},
		Mapping{Real: prefix("fd00:1::/60"), Seen: prefix("fd00:2:0:10::/60")},
	)
	if err != nil {
		t.Fatal(err)
	}
	for real, seen := range map[string]string{
		"10.244.0.0":         "10.71.0.0",
		"10.244.255.255":     "10.71.255.255",
		"10.244.3.7":         "10.71.3.7",
		"10.70.1.2":          "10.70.1.2",
		"192.168.9.95":       "10.80.3.159",
		"192.168.1.2":        "10.90.0.1",
		"fd00:1:0:f::1":      "fd00:2:0:1f::1",
		"fd00:1:0:3:4:5:6:7": "fd00:2:0:13:4:5:6:7",
	} {
		if got, err := tr.ToSeen(address(real)); err != nil || got != address(seen) {
			t.Errorf("%s is seen as %s, %v; want %s", real, got, err, seen)
		}
		if got, err := tr.ToReal(address(seen)); err != nil || got != address(real) {
			t.Errorf("%s is really %s, %v; want %s", seen, got, err, real)
		}
	}
	for _, a := range []netip.Addr{{}, address("10.243.255.255"), address("192.168.9.96"), address("fd00:1:0:10::"), address("::ffff:10.244.0.1")} {
		if got, err := tr.ToSeen(a); !errors.Is(err, ErrNotMapped) {
			t.Errorf("%s is seen as %s, %v", a, got, err)
		}
	}
	if got, err := tr.ToReal(address("10.244.0.1")); !errors.Is(err, ErrNotMapped) {
		t.Errorf("10.244.0.1 is really %s, %v", got, err)
	}
	if got, err := (Translator{}).ToReal(address("10.71.0.1")); !errors.Is(err, ErrNotMapped) {
		t.Errorf("the zero value translates to %s, %v", got, err)
	}
}

// TestTranslationKeepsHostBits goes there and back with random addresses of random ranges.
func TestTranslationKeepsHostBits(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	v4 := func() netip.Addr {
		n := random.Uint32()
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for range 2000 {
		bits := random.IntN(33)
		a := v4()
		real, seen := netip.PrefixFrom(a, bits).Masked(), netip.PrefixFrom(v4(), bits).Masked()
		tr, err := NewTranslator(Mapping{Real: real, Seen: seen})
		if err != nil {
			t.Fatal(err)
		}
		there, err := tr.ToSeen(a)
		if err != nil || !seen.Contains(there) {
			t.Fatalf("%s of %s is seen in %s as %s, %v", a, real, seen, there, err)
		}
		if back, err := tr.ToReal(there); err != nil || back != a {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
		for i := bits; i < 32; i++ {
			if bit(a, i) != bit(there, i) {
				t.Fatalf("%s of %s became %s: another host", a, real, there)
			}
		}
	}
}

func TestTranslatorRefused(t *testing.T) {
	for _, mappings := range [][]Mapping{
		{{Real: prefix("10.0.0.0/16"), Seen: prefix("10.1.0.0/17")}},
		{{Real: prefix("10.0.0.0/16"), Seen: prefix("fd00::/16")}},
		{{Real: prefix("10.0.0.0/16")}},
		{{Real: prefix("10.0.0.1/16"), Seen: prefix("10.1.0.0/16")}},
		{{Real: prefix("10.0.0.0/16"), Seen: prefix("10.1.0.0/16")}, {Real: prefix("10.0.1.0/24"), Seen: prefix("10.2.0.0/24")}},
		{{Real: prefix("10.0.0.0/16"), Seen: prefix("10.1.0.0/16")}, {Real: prefix("10.3.1.0/24"), Seen: prefix("10.1.2.0/24")}},
	} {
		if _, err := NewTranslator(mappings...); err == nil {
			t.Errorf("%v accepted", mappings)
		}
	}
}
