package trace

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

var addr, prefix = netip.MustParseAddr, netip.MustParsePrefix

// pair returns two connected clusters, each with two nodes and two gateways. With equal ranges both are remapped: a is
// 10.72.0.0/16 in b, b is 10.71.0.0/16 in a.
func pair(t *testing.T, equal bool) (a, b *side) {
	t.Helper()
	podsOf := map[string]records.Mapping{"a": {Real: prefix("10.244.0.0/16"), Seen: prefix("10.244.0.0/16")}, "b": {Real: prefix("10.11.0.0/16"), Seen: prefix("10.11.0.0/16")}}
	external := map[string]records.Mapping{"a": {Real: prefix("10.70.0.0/16"), Seen: prefix("10.82.0.0/16")}, "b": {Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")}}
	if equal {
		podsOf["a"] = records.Mapping{Real: prefix("10.244.0.0/16"), Seen: prefix("10.72.0.0/16")}
		podsOf["b"] = records.Mapping{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}
	}
	make := func(own, peer, network string, role records.Role) *side {
		pods := podsOf[own].Real
		s := &side{reports: map[records.GatewayID]*records.Status{}}
		s.Fabric = &records.Fabric{
			Name: own, PodCIDRs: []netip.Prefix{pods}, ExternalCIDRs: []netip.Prefix{prefix("10.70.0.0/16")}, InternalCIDRs: []netip.Prefix{prefix("10.80.0.0/16")},
			Overlay: records.Overlay{Kind: records.VXLAN, Port: 6091}, MTU: 1500,
		}
		s.peering = records.Peering{
			Name: peer, Number: 1, Role: role, MTU: 1380,
			Peer:  records.Peer{Name: peer, PodCIDRs: []records.Mapping{podsOf[peer]}, ExternalCIDRs: []records.Mapping{external[peer]}},
			Local: records.Local{PodCIDRs: []records.Mapping{podsOf[own]}, ExternalCIDRs: []records.Mapping{external[own]}},
		}
		s.Gateways = map[records.GatewayID]records.Gateway{}
		s.status = status.Peering{Cluster: own, Peer: peer}
		in := func(third, last byte) netip.Addr {
			a := pods.Addr().As4()
			return netip.AddrFrom4([4]byte{a[0], a[1], third, last})
		}
		for i := range 2 {
			number := byte(i + 1)
			id := records.GatewayID{Peering: peer, Number: i + 1}
			g := records.LocalGateway{}
			state := status.Gateway{Number: i + 1, State: health.Healthy}
			for j := range 2 {
				g.Tunnels = append(g.Tunnels, records.Tunnel{ListenPort: 51840})
				state.Tunnels = append(state.Tunnels, status.Tunnel{PeerGateway: j + 1, State: health.Healthy, Endpoint: "192.0.2.1:30840", PathMTU: 1500})
			}
			s.peering.Gateways = append(s.peering.Gateways, g)
			s.status.Gateways = append(s.status.Gateways, state)
			s.Gateways[id] = records.Gateway{Pod: id.Name() + "-x", Node: own + "-1", PodIP: in(1, 100+number)}
			now := time.Unix(1700000000, 0)
			report := &records.Status{Time: now}
			for _, n := range []string{own + "-1", own + "-2"} {
				report.Nodes = append(report.Nodes, records.NodeStatus{Name: n, LastEcho: now, LastProof: now, Path: records.PathSize{Asked: true, MTU: 1500}})
			}
			s.reports[id] = report
		}
		for i := range 2 {
			number := byte(i + 1)
			n := records.Node{
				Name: own + "-" + string('0'+number), Number: i + 1, Peerings: []string{peer},
				PodCIDRs: []netip.Prefix{netip.PrefixFrom(in(number, 0), 24)}, OverlaySources: map[records.GatewayID]netip.Addr{},
			}
			for _, id := range s.peering.GatewayIDs() {
				n.OverlaySources[id] = addr(network + string('0'+number))
			}
			s.Nodes = append(s.Nodes, n)
		}
		s.Peerings = []records.Peering{s.peering}
		return s
	}
	a, b = make("a", "b", "172.31.1.1", records.Client), make("b", "a", "172.31.2.1", records.Server)
	b.expose(records.Exposed{Host: addr("192.0.2.17"), Address: addr("10.70.128.1")})
	for _, s := range []*side{a, b} {
		c := translate.Config{
			Peer:     s.peering.Name,
			Remote:   translate.Side{Pods: s.peering.Peer.PodCIDRs, External: s.peering.Peer.ExternalCIDR()},
			Local:    translate.Side{Pods: s.peering.Local.PodCIDRs, External: s.peering.Local.ExternalCIDR()},
			Internal: s.Fabric.InternalCIDR(), Exposed: map[netip.Addr]netip.Addr{},
		}
		for _, e := range s.peering.Exposed {
			c.Exposed[e.Host] = e.Address
		}
		var err error
		if s.translator, err = translate.New(c); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func (s *side) expose(e ...records.Exposed) {
	s.peering.Exposed = e
	s.Peerings[0].Exposed = e
}

// TestCompute traces connections in clusters with at most one fault.
func TestCompute(t *testing.T) {
	denied := podPolicies{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", Labels: map[string]string{"app": "db"}}},
		[]networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
		}}},
	}
	for name, test := range map[string]struct {
		equal    bool
		from, to string // addresses in their own clusters
		protocol Protocol
		change   func(a, b *side, from, to *End)
		dropped  string // end of the reason; "": not dropped
	}{
		"translated":  {equal: true, from: "10.244.1.7", to: "10.244.2.5"},
		"disjoint":    {from: "10.244.1.7", to: "10.11.2.5"},
		"node-ping":   {equal: true, from: "10.80.0.2", to: "10.80.0.1", protocol: ICMP},
		"node-tcp":    {from: "10.80.0.2", to: "10.80.0.1", dropped: "of nodes, peers reach ping and answers only"},
		"exposed":     {equal: true, from: "10.244.2.7", to: "192.0.2.17"},
		"not-exposed": {equal: true, from: "10.244.2.7", to: "192.0.2.17", change: func(_, b *side, _, _ *End) { b.expose() }, dropped: "no host of b is exposed by this address"},
		"one-gateway": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, _ *side, _, _ *End) {
			a.status.Gateways[0].State, a.status.Gateways[0].Reason = health.Down, "no echo from nodes"
			a.status.Gateways[1].Tunnels[0].Unused = "the gateway of the peer shuts down"
		}},
		"no-gateway": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, _ *side, _, _ *End) {
			for i := range a.status.Gateways {
				a.status.Gateways[i].State, a.status.Gateways[i].Reason = health.Down, "no echo from nodes"
			}
		}, dropped: "no gateway of a is usable"},
		"policy": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(_, _ *side, _, to *End) { to.pod = denied },
			dropped: "selects pod db-0, and none allows ingress 10.72.1.7 (tcp port 5432)"},
		"unverified": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(_, b *side, _, _ *End) {
			b.reports[records.GatewayID{Peering: "a", Number: 1}].Nodes[1].LastEcho = time.Time{}
		}, dropped: "node b-2 is not verified: no echo between gateway and node"},
		"not-forwarding": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, _ *side, _, _ *End) { a.Nodes[0].NotForwarding = true },
			dropped: "net.ipv4.ip_forward is 0"},
		"no-pod":      {equal: true, from: "10.244.1.7", to: "10.244.9.5", dropped: "no node of b reports a pod with address 10.244.9.5"},
		"gateway-pod": {equal: true, from: "10.244.1.7", to: "10.244.1.101", dropped: "is the pod of a gateway, which peers do not reach"},
		// Records that differ, as after an interrupted change of the number of gateways, and a report with more tunnels
		// than exist.
		"fewer-gateways": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, b *side, _, _ *End) {
			a.status.Gateways[0].Tunnels[0].State = health.Down
			b.peering.Gateways = b.peering.Gateways[:1]
		}, dropped: "the record of b has no gateway 2"},
		"more-tunnels": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, _ *side, _, _ *End) {
			g := &a.status.Gateways[0]
			g.Tunnels = append([]status.Tunnel{{Unused: "x"}, {Unused: "x"}}, g.Tunnels...)
		}, dropped: "no tunnel is usable"},
		"narrow": {equal: true, from: "10.244.1.7", to: "10.244.2.5", change: func(a, _ *side, _, _ *End) {
			a.status.Gateways[0].Tunnels[0].PathMTU = 1400
			a.Nodes[0].Drift = records.Drift{Times: 2, Last: time.Unix(1700000000, 0), What: "route"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, test.equal)
			from, to := a.end(addr(test.from)), b.end(addr(test.to))
			if to.Kind == translate.Pod {
				to.Unreachable = "" // the gateway's route gives the same reason
			}
			if test.change != nil {
				test.change(a, b, &from, &to)
			}
			r := Result{From: from, To: to, Flow: Flow{Protocol: TCP, Port: 5432}}
			if test.protocol != "" {
				r.Flow = Flow{Protocol: test.protocol}
			}
			r, err := compute(a, b, r)
			require.NoError(t, err)
			text, err := json.MarshalIndent(r, "", "  ")
			require.NoError(t, err)
			if got := r.There.Dropped(); !strings.HasSuffix(got, test.dropped) || (got == "") != (test.dropped == "") || r.Crosses != (got == "" && r.Back.Dropped() == "") {
				t.Errorf("dropped: %q, want %q\n%s", got, test.dropped, text)
			}
			if slices.Contains([]string{"translated", "exposed", "one-gateway", "policy", "no-gateway", "not-exposed", "node-ping", "narrow"}, name) {
				golden.Check(t, name+".json", string(text)+"\n")
			}
		})
	}
}

// TestOtherFlows checks that the trace takes one gateway, and that it lists the other gateways that carry packets if
// this one does not, and the reverse.
func TestOtherFlows(t *testing.T) {
	a, b := pair(t, true)
	for _, s := range []*side{a, b} {
		s.reports[s.peering.GatewayIDs()[1]].Nodes = nil
	}
	r, err := compute(a, b, Result{From: a.end(addr("10.244.1.7")), To: b.end(addr("10.244.2.5")), Flow: Flow{Protocol: TCP, Port: 5432}})
	if err != nil || !r.Crosses {
		t.Fatalf("crosses %v, %v", r.Crosses, err)
	}
	for _, h := range []Hop{r.There[0], r.Back[0]} {
		if len(h.Notes) != 1 || !strings.HasPrefix(h.Notes[0], "other flows take gateway2-"+map[string]string{"a": "b", "b": "a"}[h.Cluster]+"-x, by which the node is not verified: ") {
			t.Errorf("at %s: %q", h.Name, h.Notes)
		}
	}
}
