//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// TestRecordWithPathOfAnother checks that a readable record with the ranges and the number that are reserved for
// another peering takes neither its path nor its gateways, whether or not the helper restarts: the other peering goes
// on, and one whose record was changed so is kept as it was.
func TestRecordWithPathOfAnother(t *testing.T) {
	claim := func(name string) records.Peering { // of b's ranges and number
		p := severalPeering()
		p.Name, p.Peer.Name, p.Peer.ClusterID = name, "x", "id-x"
		return p
	}
	numberOnly := sample.SecondPeering()
	numberOnly.Name, numberOnly.Number = "x", 1
	numberOnly.Peer.PodCIDRs = []records.Mapping{sample.Mapping("10.244.0.0/16", "10.98.0.0/16")}
	numberOnly.Peer.ExternalCIDRs = []records.Mapping{sample.Mapping("10.70.0.0/16", "10.97.0.0/16")}
	for _, test := range []struct {
		name    string
		record  records.Peering
		damage  bool // b's record
		missing bool // b's record is deleted
		want    []string
	}{
		{"a claims b, all valid", claim("a"), false, false, []string{"b", "c"}},
		{"x claims b, all valid", claim("x"), false, false, []string{"b", "c"}},
		{"x claims b, b damaged", claim("x"), true, false, []string{"b", "c"}},
		{"x claims b's number only, b damaged", numberOnly, true, false, []string{"b", "c"}},
		{"x claims b, b deleted", claim("x"), false, true, []string{"c"}},
		{"c claims b, all valid", claim("c"), false, false, []string{"b", "c"}},
		{"c claims b, b damaged", claim("c"), true, false, []string{"b", "c"}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", test.name, restart), func(t *testing.T) {
				w := severalGateways(t)
				before := w.view().state(netip.MustParseAddr("10.80.0.7"))
				w.put(sample.PeeringMap(t, test.record))
				if test.damage {
					w.damage(records.PeeringName("b"))
				}
				if test.missing {
					w.drop(records.PeeringName("b"))
				}
				if restart {
					w.restart(before)
				}
				v := w.view()
				for _, p := range v.Peerings {
					if p.Name != "b" && slices.Contains(p.Seen(), netip.MustParsePrefix("10.11.0.0/16")) {
						t.Errorf("peering %s is served with b's ranges and number %d, gateways %v", p.Name, p.Number, v.gateways)
					}
				}
				if !slices.Equal(v.names(), test.want) {
					t.Errorf("served %v, want %v; held back %v; faults %v", v.names(), test.want, v.HeldBack, w.faults)
				}
			})
		}
	}
}

// TestRecordWithPathOfAnotherWithoutNumbers does the same for an ipam that lacks the peering, as an older backup does:
// the peering goes on by its own record.
func TestRecordWithPathOfAnotherWithoutNumbers(t *testing.T) {
	w := severalGateways(t)
	before := w.view().state(netip.MustParseAddr("10.80.0.7"))
	p := severalPeering()
	p.Name = "a"
	w.put(sample.PeeringMap(t, p), sample.Reserved(t, sample.SecondPeering()))
	w.restart(before)
	if v := w.view(); !slices.Equal(v.names(), []string{"b", "c"}) {
		t.Errorf("served are %v, want b and c", v.names())
	}
}

// TestLaterPeeringInUnclaimedRange checks that a peering that is connected while a range that contains its own is held
// back has a tunnel to an endpoint in its ranges, as where pods and nodes share a network.
func TestLaterPeeringInUnclaimedRange(t *testing.T) {
	for _, boot := range []string{"10.99.0.0/16", "10.12.0.0/15"} {
		w := severalGateways(t)
		w.damage(records.PeeringName("b"))
		w.drop(records.PeeringName("c"))
		w.put(sample.Reserved(t, severalPeering()))
		w.restart(netops.State{})
		w.objects.boot = []netip.Prefix{netip.MustParsePrefix(boot)}
		w.view()
		w.objects.boot, w.objects.found = nil, nil // as after the first pass
		at := sample.SecondGateway()
		at.Endpoint = netip.MustParseAddrPort("10.12.3.4:51840")
		w.put(sample.Reserved(t, severalPeering(), sample.SecondPeering()), sample.PeeringMap(t, sample.SecondPeering()), sample.GatewayMap(t, "c", at))
		v := w.view()
		if got := v.gateways[sample.FirstGateway("c")].Endpoint; got != at.Endpoint {
			t.Errorf("boot guard had %s: served %v, held back %v, endpoint %v is not exempt", boot, v.names(), v.HeldBack, got)
		}
	}
}
