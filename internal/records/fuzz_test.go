package records_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/records"
)

// FuzzDecode decodes any text that an API server may return for a record; the API server of a peer is not trusted.
// Decoding takes memory in proportion to the length. A record that Decode accepts can be encoded and decodes to the
// same value.
func FuzzDecode(f *testing.F) {
	for _, d := range []records.Document{peering(), records.Gateway{
		Version: records.SchemaVersion, Pod: "p", Node: "n", PodIP: netip.MustParseAddr("10.244.1.9"),
		PeerNodes: []netip.Addr{netip.MustParseAddr("10.71.0.3")},
	}, records.Node{
		Version: records.SchemaVersion, Name: "n", Number: 7, MTU: 1500,
		OverlaySources: map[records.GatewayID]netip.Addr{{Peering: "b", Number: 1}: netip.MustParseAddr("172.31.1.11")},
	}, records.Status{Version: records.SchemaVersion, Pod: "p", TunnelStatus: records.TunnelStatus{Loss: 0.5}}} {
		text, err := records.Encode(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add("version: 1\nmtu: 1e9\npeer: {podCIDRs: [{real: ::/0}]}")
	f.Add("version: 1\na: &a [*a, *a]")
	f.Add("version: 1\nclusterID: x\nname: a\nName: b\nlater: {name: 1}\nexternalCIDRs: [10.70.0.0/16]\ninternalCIDRs: [10.80.0.0/16]")
	f.Fuzz(func(t *testing.T, text string) {
		checkGrowth(t, text, nil)
		roundTrip[records.Fabric](t, text)
		roundTrip[records.Peering](t, text)
		roundTrip[records.Gateway](t, text)
		roundTrip[records.Node](t, text)
		roundTrip[records.Status](t, text)
	})
}

func roundTrip[T records.Document](t *testing.T, text string) {
	d, err := records.Decode[T](text)
	if err != nil {
		return
	}
	written, err := records.Encode(d)
	if err != nil {
		t.Fatalf("%T was read but cannot be written: %v", d, err)
	}
	back, err := records.Decode[T](written)
	if diff := cmp.Diff(d, back, comparable, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Fatalf("written and read again: %v\n%s\n%s", err, diff, written)
	}
}
