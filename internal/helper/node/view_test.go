//go:build linux

package node

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

func TestPodsOf(t *testing.T) {
	pod := func(edit func(*corev1.Pod), ips ...string) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		if edit != nil {
			edit(p)
		}
		return p
	}
	ended := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	onHost := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	tests := map[string]struct {
		cidrs []string
		pods  []*corev1.Pod
		want  localPods
	}{
		"no pods":            {[]string{"10.244.1.0/24"}, nil, localPods{cidrs: parsed.Prefixes("10.244.1.0/24")}},
		"dual stack":         {[]string{"fd00::/64", "10.244.1.0/24"}, []*corev1.Pod{pod(nil, "10.244.1.5", "fd00::5")}, localPods{cidrs: parsed.Prefixes("10.244.1.0/24"), inside: true}},
		"IPv6 first":         {[]string{"10.244.1.0/24"}, []*corev1.Pod{pod(nil, "fd00::5", "10.244.1.5")}, localPods{cidrs: parsed.Prefixes("10.244.1.0/24"), inside: true}},
		"host bits":          {[]string{"10.244.1.7/24"}, nil, localPods{cidrs: parsed.Prefixes("10.244.1.0/24")}},
		"no CIDR":            {nil, []*corev1.Pod{pod(nil, "10.9.0.2"), pod(nil, "10.9.0.1"), pod(nil, "10.9.0.2")}, localPods{stray: parsed.Addresses("10.9.0.1", "10.9.0.2")}},
		"CNI of its own":     {[]string{"10.244.1.0/24"}, []*corev1.Pod{pod(nil, "10.9.0.1")}, localPods{stray: parsed.Addresses("10.9.0.1")}},
		"one outside":        {[]string{"10.244.1.0/24"}, []*corev1.Pod{pod(nil, "10.244.1.5"), pod(nil, "10.9.0.1")}, localPods{cidrs: parsed.Prefixes("10.244.1.0/24"), stray: parsed.Addresses("10.9.0.1"), inside: true}},
		"without an address": {[]string{"10.244.1.0/24"}, []*corev1.Pod{pod(nil), pod(nil, "damaged")}, localPods{cidrs: parsed.Prefixes("10.244.1.0/24")}},
		"not in the network": {
			[]string{"10.244.1.0/24"},
			[]*corev1.Pod{pod(onHost, "172.31.1.1"), pod(ended(corev1.PodSucceeded), "10.9.0.1"), pod(ended(corev1.PodFailed), "10.9.0.2")},
			localPods{cidrs: parsed.Prefixes("10.244.1.0/24")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := podsOf(&corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: test.cidrs}}, test.pods)
			if got.inside != test.want.inside || !slices.Equal(got.cidrs, test.want.cidrs) || !slices.Equal(got.stray, test.want.stray) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if want := map[string][]netip.Addr{
				"dual stack": parsed.Addresses("10.244.1.5"), "IPv6 first": parsed.Addresses("10.244.1.5"),
				"one outside": parsed.Addresses("10.9.0.1", "10.244.1.5"), "not in the network": nil,
			}; slices.Contains(slices.Collect(maps.Keys(want)), name) && !slices.Equal(got.all, want[name]) {
				t.Errorf("all addresses %v, want %v", got.all, want[name])
			}
		})
	}
}

// TestRanges checks that connections are forgotten for all ranges that a state routes, when they are added or removed.
func TestRanges(t *testing.T) {
	f, p := sample.Fabric(), sample.Peering()
	v := view{fabric: &f, Choice: serving.Choice{Peerings: []records.Peering{p}}}
	want := append([]netip.Prefix{f.InternalCIDR()}, append(p.Seen(), cidr.Single(p.GatewayAddress(f.InternalCIDR(), 1)))...)
	if got := v.ranges(); !slices.Equal(got, want) || len(got) < 4 {
		t.Errorf("ranges %v, want %v", got, want)
	}
	v.Peerings, v.HeldBack = nil, p.Seen()
	if got := v.ranges(); !slices.Equal(got, p.Seen()) {
		t.Errorf("ranges %v where they are held back", got)
	}
	v.HeldBack = nil
	if got := v.ranges(); len(got) > 0 {
		t.Errorf("ranges %v without a peering", got)
	}
}

func TestNodeState(t *testing.T) {
	internal := netip.MustParseAddr("10.80.0.7")
	full := oneView()
	full.node, full.pods = sample.Node("n1"), localPods{cidrs: parsed.Prefixes("10.244.1.0/24"), stray: parsed.Addresses("10.244.9.3")}
	fabric := *full.fabric
	config := netops.NodeConfig{
		Overlay: netops.OverlayConfig{Kind: netops.KindVXLAN, Port: 6091, MTU: 1450}, Internal: internal,
		InternalCIDR: fabric.InternalCIDR(), Pods: parsed.Prefixes("10.244.1.0/24", "10.244.9.3/32"),
		Peers: []netops.NodePeer{{
			Name:  sample.Peering().Name,
			CIDRs: parsed.Prefixes("10.11.0.0/16", "10.71.0.0/16"), Nodes: parsed.Prefixes("10.71.0.0/17")[0],
			Gateways:  []netops.NodeGateway{{Internal: netip.MustParseAddr("10.80.128.8"), Pod: netip.MustParseAddr("10.244.1.9"), VNI: 8, Local: true, Used: true}},
			Endpoints: parsed.Addresses("192.0.2.7"), MTU: 1370,
		}},
	}
	expect := func(name string, v view, want netops.State) {
		t.Helper()
		if diff := netops.Diff(v.state(internal), want); !diff.Empty() {
			t.Errorf("%s: from what is to what should be:\n%s", name, diff)
		}
	}
	held := parsed.Prefixes("10.12.0.0/16")
	expect("no fabric", view{node: full.node, Choice: serving.Choice{Peerings: full.Peerings}}, netops.State{})
	expect("no fabric, and something held back", view{node: full.node, Choice: serving.Choice{HeldBack: held}}, netops.GuardState(held))
	expect("no peering that is served", view{node: full.node, fabric: &fabric, Choice: serving.Choice{HeldBack: held}}, netops.GuardState(held))
	expect("no peering", view{node: full.node, fabric: &fabric}, netops.State{})
	expect("endpoint of the record", full, netops.NodeState(config))

	observed := sample.Gateway()
	observed.Endpoint = netip.MustParseAddrPort("10.11.3.4:51840") // within the peer's range: requires an exemption
	full.gateways = map[records.GatewayID]records.Gateway{sample.FirstGateway("b"): observed}
	config.Peers[0].Endpoints = parsed.Addresses("10.11.3.4", "192.0.2.7")
	expect("observed endpoint", full, netops.NodeState(config))

	full.gateways = nil
	config.Peers[0].Gateways[0].Pod = netip.Addr{}
	expect("gateway not running", full, netops.NodeState(config))

	full.HeldBack, config.HeldBack = held, held
	expect("another peering held back", full, netops.NodeState(config))
}
