//go:build linux

package node

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// connected returns cluster a with peerings b and c, as created by connect.
func connected(t *testing.T) *fakeCluster {
	return newFakeCluster(t, sample.FabricMap(t, sample.Fabric()), sample.Reserved(t, sample.Peering(), sample.SecondPeering()),
		sample.PeeringMap(t, sample.Peering()), sample.PeeringMap(t, sample.SecondPeering()), sample.GatewayMap(t, "b", sample.Gateway()), sample.GatewayMap(t, "c", sample.SecondGateway()))
}

// damage is an external change of a ConfigMap.
var damage = map[string]func(cm *corev1.ConfigMap){
	"text that is none": func(cm *corev1.ConfigMap) { cm.Data[records.DataKey] = "x" },
	"no data":           func(cm *corev1.ConfigMap) { cm.Data = nil },
	"a newer version":   func(cm *corev1.ConfigMap) { edit(cm, "version: 1", "version: 99") },
	"a field twice":     func(cm *corev1.ConfigMap) { cm.Data[records.DataKey] += "mtu: 1400\n" },
	"another component": func(cm *corev1.ConfigMap) { cm.Labels[records.LabelComponent] = records.ComponentGateway },
	"no component":      func(cm *corev1.ConfigMap) { delete(cm.Labels, records.LabelComponent) },
	"another peering":   func(cm *corev1.ConfigMap) { cm.Labels[records.LabelPeering] = "d" },
	"no peering's label": func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{records.LabelComponent: records.ComponentPeering, "x": "y"}
	},
	"another peering's name": func(cm *corev1.ConfigMap) { edit(cm, "\nname: b\n", "\nname: d\n") },
}

func edit(cm *corev1.ConfigMap, old, new string) {
	cm.Data[records.DataKey] = strings.Replace(cm.Data[records.DataKey], old, new, 1)
}

// TestDamageStaysWithItsPeering checks that a peering whose record is damaged continues unchanged, and that changes of
// all others are applied. A helper that starts in this state holds the peering's ranges back, and serves the others.
func TestDamageStaysWithItsPeering(t *testing.T) {
	for what, change := range damage {
		t.Run(what, func(t *testing.T) {
			w := connected(t)
			before := w.view()
			damaged := sample.PeeringMap(t, sample.Peering())
			change(damaged)
			w.put(damaged)
			second := sample.SecondPeering()
			second.MTU = 1300
			w.put(sample.PeeringMap(t, second))
			after := w.view()
			w.wantFaults("damaged while it is served", "ConfigMap peering-b")
			if !slices.Equal(after.names(), []string{"b", "c"}) || after.gateways[sample.FirstGateway("b")].PodIP != before.gateways[sample.FirstGateway("b")].PodIP || after.Peerings[1].MTU != 1300 {
				t.Errorf("served %v through %v", after.Peerings, after.gateways)
			}
			if after.refused["b"] == "" || after.refused["c"] != "" || len(after.HeldBack) > 0 || len(after.Guarded) > 0 {
				t.Errorf("refused %v, held back %v of %v", after.refused, after.HeldBack, after.Guarded)
			}
			w.memory = newLastValid()
			fresh := w.view()
			w.wantFaults("damaged when the helper starts", "ConfigMap peering-b")
			if !slices.Equal(fresh.names(), []string{"c"}) || !slices.Equal(fresh.HeldBack, sample.Peering().Seen()) || !slices.Equal(fresh.Guarded, []string{"b"}) {
				t.Errorf("served %v, held back %v of %v", fresh.names(), fresh.HeldBack, fresh.Guarded)
			}
			w.put(sample.PeeringMap(t, sample.Peering()))
			if mended := w.view(); !slices.Equal(mended.names(), []string{"b", "c"}) || len(w.faults) > 0 || len(mended.HeldBack) > 0 {
				t.Errorf("mended: served %v, faults %v, held back %v", mended.names(), w.faults, mended.HeldBack)
			}
		})
	}
}

// TestLaterRelease checks that records with fields of a later release are applied, at first and after changes.
func TestLaterRelease(t *testing.T) {
	w := connected(t)
	later := func(cm *corev1.ConfigMap) {
		text := cm.Data[records.DataKey]
		if object, json := strings.CutSuffix(text, "}"); json {
			cm.Data[records.DataKey] = object + `,"later":{"some":1}}`
		} else {
			cm.Data[records.DataKey] = text + "later: {some: 1}\n"
		}
		w.put(cm)
	}
	first := sample.Peering()
	first.MTU = 1300
	later(sample.FabricMap(t, sample.Fabric()))
	later(sample.Reserved(t, first, sample.SecondPeering()))
	later(sample.PeeringMap(t, first))
	later(sample.GatewayMap(t, "b", sample.Gateway()))
	for _, when := range []string{"after a change", "when the helper starts"} {
		v := w.view()
		if len(w.faults) > 0 || !slices.Equal(v.names(), []string{"b", "c"}) || v.Peerings[0].MTU != 1300 || !v.gateways[sample.FirstGateway("b")].PodIP.IsValid() {
			t.Errorf("%s: faults %v, served %v through %v", when, w.faults, v.Peerings, v.gateways)
		}
		w.memory = newLastValid()
	}
}

// TestMissingRecordIsHeldBack checks that the reserved ranges of a peering are guarded, with or without a record.
func TestMissingRecordIsHeldBack(t *testing.T) {
	w := connected(t)
	w.view()
	w.drop(records.PeeringName("b"))
	v := w.view()
	if !slices.Equal(v.names(), []string{"c"}) || !slices.Equal(v.HeldBack, sample.Peering().Seen()) || !slices.Equal(v.Guarded, []string{"b"}) || len(w.faults) > 0 {
		t.Errorf("served %v, held back %v of %v, faults %v", v.names(), v.HeldBack, v.Guarded, w.faults)
	}
	if _, there := v.gateways[sample.FirstGateway("b")]; there {
		t.Error("its gateway is used")
	}
	w.drop(records.PeeringName("c"))
	w.drop(records.FabricName)
	all := slices.Concat(sample.Peering().Seen(), sample.SecondPeering().Seen())
	if v = w.view(); v.fabric != nil || v.blind || !sameRanges(v.HeldBack, all) {
		t.Errorf("without records: fabric %v, blind %v, held back %v", v.fabric, v.blind, v.HeldBack)
	}
	if state := v.state(netip.MustParseAddr("10.80.0.7")); len(state.Routes) != len(all) || len(state.Links) > 0 {
		t.Errorf("without records: %v", state)
	}
	w.put(sample.Reserved(t))
	if v = w.view(); len(v.HeldBack) > 0 || !netops.Diff(netops.State{}, v.state(netip.Addr{})).Empty() {
		t.Errorf("nothing is reserved, and held back %v", v.HeldBack)
	}
}

func sameRanges(a, b []netip.Prefix) bool {
	b = slices.SortedFunc(slices.Values(b), netip.Prefix.Compare)
	return slices.Equal(slices.SortedFunc(slices.Values(a), netip.Prefix.Compare), b)
}

// TestDamagedFabric checks that the last valid fabric stays in use. A helper without one holds back the ranges of all
// peers.
func TestDamagedFabric(t *testing.T) {
	for what, change := range map[string]func(*fakeCluster){
		"deleted":      func(w *fakeCluster) { w.drop(records.FabricName) },
		"damaged":      func(w *fakeCluster) { w.objects.fabric.Data[records.DataKey] = "version: 1\nclusterID: [\n" },
		"relabelled":   func(w *fakeCluster) { w.objects.fabric.Labels[records.LabelComponent] = records.ComponentStatus },
		"a gateway's":  func(w *fakeCluster) { w.objects.fabric.Labels[records.LabelPeering] = "b" },
		"undecided":    func(w *fakeCluster) { edit(w.objects.fabric, "kind: vxlan", `kind: ""`) },
		"over a node":  func(w *fakeCluster) { w.objects.node.Status.Addresses[0].Address = "10.80.0.3" },
		"over the API": func(w *fakeCluster) { w.objects.apiServers = parsed.Addresses("10.80.1.2") },
		"over pods": func(w *fakeCluster) {
			edit(w.objects.fabric, "internalCIDRs:\n- 10.80.0.0/16", "internalCIDRs:\n- 10.244.0.0/16")
		},
		"over Services": func(w *fakeCluster) {
			edit(w.objects.fabric, "internalCIDRs:\n- 10.80.0.0/16", "internalCIDRs:\n- 10.96.0.0/16")
		},
		"over own nodes": func(w *fakeCluster) { edit(w.objects.fabric, "mtu:", "nodeNetworks: [10.80.0.0/24]\nmtu:") },
	} {
		t.Run(what, func(t *testing.T) {
			w := connected(t)
			before := w.view()
			change(w)
			if v := w.view(); v.blind || len(w.faults) != 1 || w.faults[0].Object != records.FabricName ||
				!netops.Diff(before.state(netip.MustParseAddr("10.80.0.7")), v.state(netip.MustParseAddr("10.80.0.7"))).Empty() {
				t.Errorf("blind %v, faults %v, fabric %v", v.blind, w.faults, v.fabric)
			}
			w.memory = newLastValid()
			all := slices.Concat(sample.Peering().Seen(), sample.SecondPeering().Seen())
			if v := w.view(); !v.blind || len(v.Peerings) > 0 || !sameRanges(v.HeldBack, all) {
				t.Errorf("when the helper starts: blind %v, served %v, held back %v", v.blind, v.names(), v.HeldBack)
			}
		})
	}
}

// TestRefusedRanges checks that no record makes a node route addresses of the cluster itself, and that peerings cannot
// share unique values. A rejection affects its peering only.
func TestRefusedRanges(t *testing.T) {
	seen := func(cidr string) func(*records.Peering) {
		return func(p *records.Peering) { p.Peer.PodCIDRs = []records.Mapping{sample.Mapping(cidr, cidr)} }
	}
	for what, change := range map[string]func(*records.Peering){
		"own pods":                  seen("10.244.0.0/16"),
		"some of them":              seen("10.244.7.0/24"),
		"a pod outside pod CIDRs":   seen("10.9.0.0/24"),
		"Services":                  seen("10.0.0.0/8"),
		"a node":                    seen("172.31.0.0/28"),
		"the API server":            seen("172.31.0.240/28"),
		"the API server's Service":  seen("10.96.0.0/30"),
		"the internal CIDR":         seen("10.80.7.0/24"),
		"the external CIDR":         seen("10.70.0.0/16"),
		"all there is":              seen("0.0.0.0/0"),
		"external: the API server":  func(p *records.Peering) { p.Peer.ExternalCIDRs[0] = sample.Mapping("172.31.0.0/24", "172.31.0.0/24") },
		"number of another":         func(p *records.Peering) { p.Number = sample.Peering().Number },
		"number beyond the CIDR":    func(p *records.Peering) { p.Number = 4096 },
		"ranges of another":         seen("10.11.0.0/16"),
		"around those of another":   seen("10.8.0.0/14"),
		"within those of another":   seen("10.11.12.0/24"),
		"external range of another": seen("10.71.128.0/17"),
	} {
		t.Run(what, func(t *testing.T) {
			stray := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.9.0.7"}, {IP: "10.244.1.5"}}}}
			p := sample.SecondPeering()
			change(&p)
			w := newFakeCluster(t, sample.FabricMap(t, sample.Fabric()), sample.PeeringMap(t, sample.Peering()), sample.PeeringMap(t, p), sample.GatewayMap(t, "b", sample.Gateway()))
			w.objects.pods = []*corev1.Pod{stray}
			for _, when := range []string{"from the beginning", "again"} {
				v := w.view()
				if !slices.Equal(v.names(), []string{"b"}) || v.refused["c"] == "" || v.refused["b"] != "" {
					t.Fatalf("%s: served %v, refused %v", when, v.names(), v.refused)
				}
				for _, r := range v.state(netip.MustParseAddr("10.80.0.7")).Routes {
					for _, own := range parsed.Addresses("172.31.0.250", "172.31.0.1", "10.96.0.1", "10.244.1.5", "10.9.0.7") {
						if r.Dst.Contains(own) {
							t.Errorf("%s: a route to %s for %s", when, r.Dst, own)
						}
					}
				}
			}
			w.put(sample.PeeringMap(t, sample.SecondPeering()))
			if v := w.view(); !slices.Equal(v.names(), []string{"b", "c"}) || len(w.faults) > 0 {
				t.Errorf("mended: served %v, faults %v", v.names(), w.faults)
			}
			w.put(sample.PeeringMap(t, p))
			if v := w.view(); !slices.Equal(v.names(), []string{"b", "c"}) || v.refused["c"] == "" || v.refused["b"] != "" {
				t.Errorf("changed while it is served: served %v, refused %v", v.names(), v.refused)
			}
		})
	}
}

// TestCapturedLater checks that an applied range is released when it becomes an address of the API server.
func TestCapturedLater(t *testing.T) {
	w := connected(t)
	w.view()
	w.objects.apiServers = parsed.Addresses("10.11.4.5")
	v := w.view()
	if !slices.Equal(v.names(), []string{"c"}) || !slices.Equal(v.HeldBack, []netip.Prefix{sample.Peering().Peer.ExternalCIDR().Seen}) {
		t.Errorf("served %v, held back %v", v.names(), v.HeldBack)
	}
}

// TestDamagedReservations checks that ranges from readable reservations stay guarded.
func TestDamagedReservations(t *testing.T) {
	w := connected(t)
	w.view()
	w.objects.ipam.Data[records.DataKey] = "damaged"
	w.drop(records.PeeringName("b"))
	if v := w.view(); !slices.Equal(v.HeldBack, sample.Peering().Seen()) {
		t.Errorf("held back %v", v.HeldBack)
	}
	w.wantFaults("damaged reservations", "ConfigMap ipam")
	w.objects.ipam = nil // as deleted by a reset
	w.drop(records.PeeringName("c"))
	w.drop(records.FabricName)
	if v := w.view(); v.fabric != nil || len(v.HeldBack) > 0 {
		t.Errorf("removed reservations: fabric %v, held back %v", v.fabric, v.HeldBack)
	}
}

// TestReservationsAreRead checks that a view reports whether there may be reservations that were never read. Those that
// this process has read before count as read.
func TestReservationsAreRead(t *testing.T) {
	damaged, long := sample.Reserved(t, sample.Peering()), sample.Reserved(t, sample.Peering())
	damaged.Data[records.DataKey] = "x"
	long.Data[records.DataKey] += "# " + strings.Repeat("x", records.MaxSize(records.ComponentIPAM))
	for what, cm := range map[string]*corev1.ConfigMap{"damaged": damaged, "too long": long, "missing": nil} {
		fresh, before := newFakeCluster(t, sample.FabricMap(t, sample.Fabric()), sample.PeeringMap(t, sample.Peering())), connected(t)
		if before.view().unreserved {
			t.Error("not read")
		}
		for _, w := range []*fakeCluster{fresh, before} {
			w.objects.ipam = cm
		}
		if !fresh.view().unreserved {
			t.Errorf("%s: a process that has never read them takes them for read", what)
		}
		if cm != nil && before.view().unreserved {
			t.Errorf("%s: a process that has read them before does not know them", what)
		}
	}
	if newFakeCluster(t).view().unreserved {
		t.Error("without peerings and without reservations, some are missing")
	}
}
