//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// TestRecordWithPathOfAnother checks that a readable record with the ranges and the number that are reserved for
// another peering takes neither its path nor its gateways, whether or not the helper restarts: the other peering goes
// on, and one whose record was changed so is kept as it was.
func TestRecordWithPathOfAnother(t *testing.T) {
	claim := func(name string) records.Peering {
		p := claimOfB()
		p.Name = name
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

// claimOfB returns the record of x with the ranges and the number of b.
func claimOfB() records.Peering {
	p := severalPeering()
	p.Name, p.Peer.Name, p.Peer.ClusterID = "x", "x", "id-x"
	return p
}

// attacked returns a cluster in which x has a gateway of its own and a record with b's ranges and number.
func attacked(t *testing.T) *fakeCluster {
	w := severalGateways(t)
	at := records.Gateway{Version: records.SchemaVersion, Pod: "gateway-x-x", Node: "n2", PodIP: netip.MustParseAddr("10.244.2.66")}
	w.objects.gateways = append(w.objects.gateways, sample.GatewayPod("x", at))
	w.put(sample.PeeringMap(t, claimOfB()), sample.GatewayMap(t, "x", at))
	return w
}

// TestPathOfAnotherAfterRestart restarts the helper while x claims b's path, and the reservations or b's pods do not
// tell that it is b's: x gets none of it.
func TestPathOfAnotherAfterRestart(t *testing.T) {
	noPods := func(_ *testing.T, w *fakeCluster) { // Deployment gateway-b is scaled to 0 while no helper runs
		w.objects.gateways = slices.DeleteFunc(w.objects.gateways, func(p *corev1.Pod) bool { return p.Labels[records.LabelPeering] == "b" })
	}
	damaged := func(_ *testing.T, w *fakeCluster) { w.damage(records.PeeringName("b")) }
	ofX := func(t *testing.T, w *fakeCluster) { w.put(sample.Reserved(t, claimOfB(), sample.SecondPeering())) }
	for name, changes := range map[string][]func(*testing.T, *fakeCluster){
		"b is valid, its pods run, its number is reserved for x": {ofX},
		"b is damaged, its number is reserved for b, no pods":    {damaged, noPods},
	} {
		t.Run(name, func(t *testing.T) {
			w := severalGateways(t)
			before := w.view().state(netip.MustParseAddr("10.80.0.7"))
			w = attacked(t)
			for _, change := range changes {
				change(t, w)
			}
			w.restart(before)
			for _, pass := range []string{"first pass", "next pass"} {
				v := w.view()
				if slices.Contains(v.names(), "x") {
					t.Errorf("%s: x is served with b's path: %v, gateways %v", pass, v.names(), v.gateways)
				}
				for _, p := range severalPeering().Seen() {
					if !slices.Contains(v.ranges(), p) {
						t.Errorf("%s: %s is neither routed nor guarded", pass, p)
					}
				}
				w.objects.found = nil
			}
		})
	}
}
