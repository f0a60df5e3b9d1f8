//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
	"liqonet.io/liqonet/netops"
)

// severalGateways returns cluster a with peerings b and c, b with three gateways, the second of which has no pod. The
// endpoint at which b's first gateway observes its peer is among the peer's pods.
func severalGateways(t *testing.T) *fakeCluster {
	first, second := severalPeering(), sample.SecondPeering()
	at := sample.Gateway()
	at.Endpoint = netip.MustParseAddrPort("10.11.3.4:51840")
	third := records.Gateway{Version: records.SchemaVersion, Pod: "gateway3-b-x", Node: "n2", PodIP: netip.MustParseAddr("10.244.2.33")}
	w := newFakeCluster(t, sample.FabricMap(t, sample.Fabric()), sample.Reserved(t, first, second), sample.PeeringMap(t, first), sample.PeeringMap(t, second),
		sample.GatewayMap(t, "b", at), gatewayMapOf(t, thirdGateway, third), sample.GatewayMap(t, "c", sample.SecondGateway()))
	pod := sample.GatewayPod("b", third)
	pod.Labels = thirdGateway.Identity(records.ComponentGateway).Labels()
	w.objects.gateways = append(w.objects.gateways, pod)
	return w
}

var thirdGateway = records.GatewayID{Peering: "b", Number: 3}

func severalPeering() records.Peering {
	p := sample.Peering()
	p.Gateways = slices.Repeat(p.Gateways, 3)
	return p
}

// gatewayMapOf returns the ConfigMap of any gateway's record.
func gatewayMapOf(t *testing.T, id records.GatewayID, g records.Gateway) *corev1.ConfigMap {
	cm := sample.GatewayMap(t, id.Peering, g)
	cm.Name, cm.Labels = id.Name(), id.Identity(records.ComponentGateway).Labels()
	return cm
}

// restart replaces the helper's process. The kernel has a state.
func (w *fakeCluster) restart(s netops.State) {
	w.memory, w.objects.found = newLastValid(), &s
}

// TestRestart restarts a node's helper while each record in turn is unreadable: the kernel stays as it is, and the
// record is reported. Changes of another peering are made.
func TestRestart(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	for _, name := range []string{
		records.FabricName, records.IPAMName, "peering-b", "peering-c", sample.FirstGateway("b").Name(), thirdGateway.Name(), sample.FirstGateway("c").Name(),
	} {
		t.Run(name, func(t *testing.T) {
			w := severalGateways(t)
			before := w.view().state(internal)
			if len(before.Links) != 3 || len(w.faults) > 0 {
				t.Fatalf("%d links, faults %v", len(before.Links), w.faults)
			}
			w.damage(name)
			w.restart(before)
			v := w.view()
			if v.partial || v.blind != (name == records.FabricName) || len(w.faults) != 1 || w.faults[0].Object != name {
				t.Errorf("blind %v, partial %v, faults %v", v.blind, v.partial, w.faults)
			}
			if v.blind {
				return // the kernel is not changed
			}
			if diff := netops.Diff(before, v.state(internal)); !diff.Empty() {
				t.Errorf("at the start there is to do:\n%s", diff)
			}
			w.objects.found = nil // after the first pass
			changed := sample.SecondPeering()
			if changed.MTU = 1300; name != records.PeeringName("c") {
				w.put(sample.PeeringMap(t, changed))
			}
			v = w.view()
			if i := slices.IndexFunc(v.Peerings, func(p records.Peering) bool { return p.Name == "c" }); name != records.PeeringName("c") && v.Peerings[i].MTU != 1300 {
				t.Errorf("the other peering is %v", v.Peerings[i])
			}
			w.objects.gateways = slices.DeleteFunc(w.objects.gateways, func(pod *corev1.Pod) bool { return pod.Labels[records.LabelPeering] == "b" })
			w.view()
			w.now = w.now.Add(gatewayGrace)
			if v = w.view(); v.located(sample.FirstGateway("b")) || v.located(thirdGateway) || !v.located(sample.FirstGateway("c")) {
				t.Errorf("gateways without pods: %v", v.gateways)
			}
		})
	}
}

// TestRestartWithTwoReservations restarts a node's helper while a peering's record is damaged, and the peering has two
// reservations for the peer's external CIDR: the one that the kernel routes counts.
func TestRestartWithTwoReservations(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	for _, further := range parsed.Prefixes("10.2.0.0/16", "10.99.0.0/16") { // before and after it
		w := severalGateways(t)
		before := w.view().state(internal)
		registry, err := store.Decode(w.objects.ipam.Data[records.DataKey])
		require.NoError(t, err)
		require.NoError(t, registry.Reserve(ipam.Reservation{Range: further, Owner: ipam.Peering("b"), Purpose: ipam.PeerExternal, Real: netip.MustParsePrefix("10.60.0.0/16")}))
		cm := w.objects.ipam.DeepCopy()
		cm.Data[records.DataKey] = store.Encode(registry)
		w.put(cm)
		w.damage(records.PeeringName("b"))
		w.restart(before)
		if v := w.view(); !slices.Equal(v.names(), []string{"b", "c"}) || !slices.Equal(v.HeldBack, []netip.Prefix{further}) {
			t.Errorf("%s is also reserved: served %v, held back %v", further, v.names(), v.HeldBack)
		}
	}
}

// damage replaces the text of a ConfigMap.
func (w *fakeCluster) damage(name string) {
	for _, cm := range append(slices.Clone(w.objects.maps), w.objects.fabric, w.objects.ipam) {
		if cm.Name == name {
			cm = cm.DeepCopy()
			cm.Data = map[string]string{records.DataKey: "damaged"}
			w.put(cm)
		}
	}
}

// TestRestartWithout checks what the kernel alone does not keep: a peering without a record, one whose ranges are no
// longer reserved or are the cluster's own, and the path to an address of another pod.
func TestRestartWithout(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	for what, test := range map[string]struct {
		change func(t *testing.T, w *fakeCluster)
		want   []string
		links  int
	}{
		"no record":      {func(_ *testing.T, w *fakeCluster) { w.drop("peering-b") }, []string{"c"}, 1},
		"no reservation": {func(t *testing.T, w *fakeCluster) { w.put(sample.Reserved(t, sample.SecondPeering())) }, []string{"c"}, 1},
		"another's reservation": {func(t *testing.T, w *fakeCluster) {
			other := severalPeering()
			other.Name = "d"
			w.put(sample.Reserved(t, other, sample.SecondPeering()))
		}, []string{"c"}, 1},
		"the API server's": {func(_ *testing.T, w *fakeCluster) { w.objects.apiServers = parsed.Addresses("10.11.4.5") }, []string{"c"}, 1},
		"another pod": {func(_ *testing.T, w *fakeCluster) {
			w.objects.gateways[0].Labels = records.Identity{Component: records.ComponentGateway, Peering: "d"}.Labels()
		}, []string{"b", "c"}, 2},
		"in conflict": {func(t *testing.T, w *fakeCluster) {
			second := sample.SecondPeering()
			second.Name, second.Peer.PodCIDRs = "a", []records.Mapping{sample.Mapping("10.244.0.0/16", "10.11.0.0/16")}
			w.put(sample.PeeringMap(t, second)) // first in order of names
		}, []string{"b", "c"}, 3},
	} {
		t.Run(what, func(t *testing.T) {
			w := severalGateways(t)
			before := w.view().state(internal)
			w.damage("peering-b")
			test.change(t, w)
			w.restart(before)
			v := w.view()
			if links := v.state(internal).Links; !slices.Equal(v.names(), test.want) || len(links) != test.links {
				t.Errorf("served %v by %v, want %v", v.names(), links, test.want)
			}
		})
	}
}

// TestUnreservedRestart checks that the ranges of a peering without a reservation, whose record is damaged when the
// helper restarts, stay guarded until the record can be read or is deleted, and no longer. Ranges of peerings that are
// removed meanwhile are released.
func TestUnreservedRestart(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	for name, reservations := range map[string]*corev1.ConfigMap{
		"an older backup": sample.Reserved(t, sample.SecondPeering()), "no reservations": sample.Reserved(t), "damaged": {ObjectMeta: sample.Reserved(t).ObjectMeta},
	} {
		t.Run(name, func(t *testing.T) {
			w := severalGateways(t)
			before := w.view().state(internal)
			good := sample.PeeringMap(t, severalPeering())
			w.damage(records.PeeringName("b"))
			w.put(reservations.DeepCopy())
			expect := func(when string, unreserved bool, want ...netip.Prefix) view {
				t.Helper()
				v := w.view()
				if !sameRanges(v.HeldBack, want) || v.unreserved != unreserved {
					t.Errorf("%s: held back %v, want %v; ranges are missing: %t", when, v.HeldBack, want, v.unreserved)
				}
				return v
			}
			b := severalPeering().Seen()
			w.restart(before)
			v := expect("restarted", true, b...)
			if left := v.state(internal); len(left.Links) != 1 {
				t.Errorf("links %v, want that of the other peering", left.Links)
			}
			w.restart(v.state(internal))
			expect("restarted again", true, b...)
			w.objects.found = nil
			if len(reservations.Data) > 0 {
				w.put(sample.Reserved(t))
			}
			w.drop(records.PeeringName("c"))
			expect("the other peering is removed", true, b...)
			w.objects.apiServers = parsed.Addresses("10.11.4.5")
			api := []netip.Prefix{netip.MustParsePrefix("10.11.4.5/32")}
			expect("an address of the API server", true, append(cidr.Without(severalPeering().Peer.PodCIDRs[0].Seen, api), severalPeering().Peer.ExternalCIDR().Seen)...)
			w.objects.apiServers = nil
			w.put(good)
			if v = expect("mended", len(reservations.Data) == 0); !slices.Equal(v.names(), []string{"b"}) {
				t.Errorf("served are %v", v.names())
			}
			w.drop(good.Name)
			w.put(sample.Reserved(t))
			expect("removed", false)

			w.put(good)
			w.damage(good.Name)
			w.restart(before)
			w.view()
			w.drop(good.Name)
			expect("deleted without being mended", false)
			w.objects.found = nil
			w.put(good)
			w.damage(good.Name)
			expect("only a damaged record, which was never served", true)
		})
	}
}

// TestPartlyReservedRestart checks that the ranges of a peering that its reservations lack, as in a backup from before
// the peer got them, stay guarded if its record is damaged when the helper restarts.
func TestPartlyReservedRestart(t *testing.T) {
	other := netip.MustParsePrefix("10.99.0.0/16")
	for name, change := range map[string]func(*records.Peering){
		"no pods":        func(p *records.Peering) { p.Peer.PodCIDRs = nil },
		"other pods":     func(p *records.Peering) { p.Peer.PodCIDRs = []records.Mapping{{Real: other, Seen: other}} },
		"other external": func(p *records.Peering) { p.Peer.ExternalCIDRs[0].Seen = other },
	} {
		t.Run(name, func(t *testing.T) {
			w := severalGateways(t)
			before, good, backup := w.view().state(netip.MustParseAddr("10.80.0.7")), sample.PeeringMap(t, severalPeering()), severalPeering()
			change(&backup)
			w.put(sample.Reserved(t, backup, sample.SecondPeering()))
			w.damage(good.Name)
			w.restart(before)
			guarded := func(when string) {
				t.Helper()
				v := w.view()
				if !v.unreserved {
					t.Errorf("%s: the ranges of all peers count as known", when)
				}
				for _, p := range severalPeering().Seen() {
					if !cidr.Within(p, v.ranges()) {
						t.Errorf("%s: %s is neither routed nor guarded: served %v, held back %v", when, p, v.names(), v.HeldBack)
					}
				}
			}
			guarded("restarted")
			w.objects.found = nil
			guarded("the next pass")
			w.put(good, sample.Reserved(t, severalPeering(), sample.SecondPeering()))
			if v := w.view(); len(v.HeldBack) > 0 || v.unreserved || !slices.Equal(v.names(), []string{"b", "c"}) {
				t.Errorf("mended: served %v, held back %v", v.names(), v.HeldBack)
			}
		})
	}
}

// TestRangesOfTheBootGuard checks that ranges which only the boot guard of a booted node has are held back while a
// record cannot be read, unless the cluster uses them itself.
func TestRangesOfTheBootGuard(t *testing.T) {
	w := severalGateways(t)
	good := sample.PeeringMap(t, severalPeering())
	w.damage(good.Name)
	b := severalPeering().Seen()
	unknown, own := netip.MustParsePrefix("10.99.0.0/16"), netip.MustParsePrefix("10.244.0.0/16")
	w.restart(netops.State{})
	// nft(8) merges neighbours: a range of the served peering c, and one of no peering.
	w.objects.boot = slices.Concat(b, []netip.Prefix{unknown, own, netip.MustParsePrefix("10.12.0.0/15")})
	want := slices.Concat(b, []netip.Prefix{netip.MustParsePrefix("10.13.0.0/16"), unknown})
	slices.SortFunc(want, netip.Prefix.Compare)
	if v := w.view(); !slices.Equal(v.HeldBack, want) || !slices.Equal(v.names(), []string{"c"}) {
		t.Errorf("booted: held back %v, want %v, served %v", v.HeldBack, want, v.names())
	}
	w.objects.found, w.objects.boot = nil, nil
	if v := w.view(); !slices.Equal(v.HeldBack, want) {
		t.Errorf("the boot guard is removed: held back %v, want %v", v.HeldBack, want)
	}
	late := netip.MustParsePrefix("10.98.0.0/16")
	w.objects.boot = []netip.Prefix{late, unknown}
	for range 2 {
		if v := w.view(); len(v.HeldBack) != len(want)+1 || !slices.Contains(v.HeldBack, late) {
			t.Errorf("another one is loaded: held back %v", v.HeldBack)
		}
	}
	w.put(good)
	if v := w.view(); len(v.HeldBack) > 0 {
		t.Errorf("all records are read: held back %v", v.HeldBack)
	}
}

// TestRestartWithoutReservations checks that a helper changes nothing if it can read neither the reservations nor a
// peering which the kernel may have.
func TestRestartWithoutReservations(t *testing.T) {
	w := severalGateways(t)
	w.damage(records.IPAMName)
	if v := w.view(); v.partial {
		t.Error("all peerings are served, and some are missing")
	}
	w.damage("peering-b")
	if v := w.view(); v.partial || !slices.Equal(v.names(), []string{"b", "c"}) {
		t.Errorf("the process has read the peering before: served %v, partial %v", v.names(), v.partial)
	}
	w.memory = newLastValid()
	if v := w.view(); !v.partial {
		t.Error("a new process takes what it can read for all that there is")
	}
}

// TestRestartedKernel restarts a node's helper with a real kernel and a peering's record that is damaged meanwhile. No
// step is needed, and the pod that replaces the gateway's is used.
func TestRestartedKernel(t *testing.T) {
	ns, kernel := sample.OpenKernel(t)
	ns.IP("link set lo up")
	internal := netip.MustParseAddr("10.80.0.7")
	w := severalGateways(t)
	want := w.view().state(internal)
	apply := func(what string) netops.Plan {
		t.Helper()
		have, err := kernel.Observe()
		if err != nil {
			t.Fatal(err)
		}
		w.restart(have)
		plan := netops.Diff(have, w.view().state(internal))
		if err := kernel.Apply(plan); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return plan
	}
	if plan := apply("first process"); plan.Empty() {
		t.Fatal("nothing to do on an empty kernel")
	}
	w.damage("peering-b")
	if plan := apply("next process"); !plan.Empty() {
		t.Errorf("at the start there is to do:\n%s", plan)
	}
	next := sample.Gateway()
	next.Pod, next.PodIP = "gateway-b-y", netip.MustParseAddr("10.244.1.77")
	w.put(sample.GatewayMap(t, "b", next))
	w.objects.gateways[0] = sample.GatewayPod("b", next)
	w.now = w.now.Add(time.Minute)
	w.damage("peering-b")
	apply("next pod")
	have, err := kernel.Observe()
	if err != nil {
		t.Fatal(err)
	}
	remotes := map[string]string{}
	for _, l := range have.Links {
		if l.Ours() {
			remotes[l.Name] = fmt.Sprint(l.Remote)
		}
	}
	if len(remotes) != len(want.Links) || remotes[netops.NodeLink(8)] != "10.244.1.77" || remotes[netops.NodeLink(10)] != "10.244.2.33" {
		t.Errorf("links %v", remotes)
	}
}

// TestAddressOfAnotherGateway checks that a restarted helper does not send the overlay of one gateway to another one,
// whose new pod has the address of the first one's last pod.
func TestAddressOfAnotherGateway(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	w := severalGateways(t)
	before := w.view().state(internal)
	next := sample.Gateway()
	next.Pod, next.Node, next.PodIP = "gateway-b-y", "n2", netip.MustParseAddr("10.244.2.33") // of gateway 3
	w.objects.gateways = slices.DeleteFunc(w.objects.gateways, func(p *corev1.Pod) bool { return p.Labels[records.LabelPeering] == "b" })
	w.objects.gateways = append(w.objects.gateways, sample.GatewayPod("b", next))
	w.put(sample.GatewayMap(t, "b", next))
	w.damage(records.PeeringName("b"))
	w.restart(before)
	for _, l := range w.view().state(internal).Links {
		if l.Remote == next.PodIP && l.VNI != 8 {
			t.Errorf("gateway 1, of overlay 8, is sent overlay %d", l.VNI)
		}
	}
}

// TestExchangedReservations restarts a helper after the reservations of two peerings were exchanged, or one of them was
// given to a third peering, as in an older ipam: each peering goes on by its own path in the kernel if its record can
// be read, and takes over no path of a readable one if it cannot. Of two that cannot be read, the reservations count.
func TestExchangedReservations(t *testing.T) {
	b, c, x := severalPeering(), sample.SecondPeering(), severalPeering()
	x.Name, x.Peer.PodCIDRs = "x", []records.Mapping{sample.Mapping("10.244.0.0/16", "10.98.0.0/16")}
	x.Peer.ExternalCIDRs = []records.Mapping{sample.Mapping("10.70.0.0/16", "10.97.0.0/16")}
	ofC, ofB := b, c
	ofC.Peer, ofC.Number, ofB.Peer, ofB.Number = c.Peer, c.Number, b.Peer, b.Number
	for _, test := range []struct {
		name     string
		reserved []records.Peering
		damaged  []string
		served   []string
	}{
		{"exchanged", []records.Peering{ofC, ofB}, nil, []string{"b", "c"}},
		{"exchanged, one is damaged", []records.Peering{ofC, ofB}, []string{"b"}, []string{"c"}},
		{"exchanged, both are damaged", []records.Peering{ofC, ofB}, []string{"b", "c"}, []string{"b", "c"}},
		{"the number is that of another peering", []records.Peering{x, c}, nil, []string{"b", "c"}},
		{"the number is that of another peering, and it is damaged", []records.Peering{x, c}, []string{"b"}, []string{"c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := severalGateways(t)
			before := w.view().state(netip.MustParseAddr("10.80.0.7"))
			w.put(sample.Reserved(t, test.reserved...))
			for _, name := range test.damaged {
				w.damage(records.PeeringName(name))
			}
			w.restart(before)
			v := w.view()
			if !slices.Equal(v.names(), test.served) {
				t.Errorf("served are %v, want %v", v.names(), test.served)
			}
			for _, p := range v.Peerings {
				want := map[string]records.Peering{"b": b, "c": c}[p.Name]
				if len(test.damaged) < 2 && (p.Number != want.Number || !slices.Equal(p.Seen(), want.Seen())) {
					t.Errorf("%s is served as number %d, %v", p.Name, p.Number, p.Seen())
				}
			}
		})
	}
}
