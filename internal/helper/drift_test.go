//go:build linux

package helper

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// TestDrifted: a step is drift if it leads back to what was there before, not if it follows a new record.
func TestDrifted(t *testing.T) {
	fabric := testFabric()
	v := nodeView{fabric: &fabric, peerings: []records.Peering{testPeering()}, gateways: map[string]records.Gateway{"b": testGateway()}}
	state := func() netops.State {
		return v.state(netip.MustParseAddr("10.80.0.7"))
	}
	before := state()
	second := testPeering()
	second.Name, second.GatewayAddress = "c", netip.MustParseAddr("10.80.128.2")
	second.Peer.PodCIDRs = []records.Mapping{mapping("10.244.0.0/16", "10.12.0.0/16")}
	second.Peer.ExternalCIDR = mapping("10.70.0.0/16", "10.72.0.0/16")
	v.peerings = append(v.peerings, second)
	after := state()

	names := func(have, want netops.State) []string {
		objects := drifted(netops.Diff(have, want), netops.Diff(have, before))
		out := make([]string, len(objects))
		for i, o := range objects {
			out[i] = o.kind + ": " + o.name
		}
		return out
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("a new peering", names(before, after))
	touched := before
	touched.Rules = nil
	touched.Addresses = append(slices.Clone(touched.Addresses), netops.Address{Link: netops.Overlay, Prefix: netip.MustParsePrefix("10.9.0.1/32")})
	want := []string{"rule: rule 104 table 7600", "address: address 10.9.0.1/32 dev lqn-overlay"}
	expect("a rule gone and a foreign address", names(touched, before), want...)
	expect("the same, and a new peering", names(touched, after), want...)
	touched = before
	touched.Firewall = before.Firewall
	touched.Firewall.Sets = slices.Clone(before.Firewall.Sets)
	touched.Firewall.Sets[0] = nft.NewSet("peers", netip.MustParsePrefix("10.71.0.0/16"))
	expect("a set's element gone", names(touched, before), "firewall: add element ip liqonet peers { 10.11.0.0/16 }")
}

func TestDriftIsCounted(t *testing.T) {
	m := newMetrics()
	d := newDrift(slog.New(slog.DiscardHandler), m)
	d.note()
	if got := d.record(); got != (records.Drift{}) {
		t.Errorf("of nothing: %+v", got)
	}
	d.note(driftObject{"rule", "rule 104 table 7600"}, driftObject{"link", "link lqn-overlay"})
	d.note(tunnelObject)
	if got := d.record(); got.Times != 2 || got.What != "tunnel lqn-tunnel" || got.Last.IsZero() {
		t.Errorf("recorded %+v", got)
	}
	if got := m.total(t, "liqonet_kernel_drift_total"); got != 3 {
		t.Errorf("metric counts %v objects, want 3", got)
	}
}
