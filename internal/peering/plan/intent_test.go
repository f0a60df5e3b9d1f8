package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/ipam"
)

// oneOf returns one of some values.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomRecord returns a record that may be incomplete, as an interrupted run leaves it; nil: there is none.
func randomRecord(r *rand.Rand) *records.Peering {
	if r.IntN(4) == 0 {
		return nil
	}
	p := &records.Peering{Name: "b", Role: oneOf(r, records.Client, records.Server, ""), MTU: oneOf(r, 0, 1300, 1420)}
	p.Settings.MTU, p.Settings.GatewayMode = oneOf(r, nil, new(0), new(1300)), oneOf(r, nil, new(records.ActiveStandby))
	p.Settings.ServiceType, p.Settings.Implementation = oneOf(r, nil, new(records.NodePort)), oneOf(r, nil, new(records.Kernel))
	for range r.IntN(4) {
		g := records.LocalGateway{Temporary: r.IntN(3) == 0}
		for range r.IntN(4) {
			t := records.Tunnel{Endpoints: oneOf(r, nil, []string{"192.0.2.1:51840"})}
			t.Driver.WireGuard.PublicKey = oneOf(r, "", "one", "two")
			g.Tunnels = append(g.Tunnels, t)
		}
		p.Gateways = append(p.Gateways, g)
	}
	if r.IntN(2) == 0 {
		p.Exposed = []records.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}}
	}
	return p
}

// randomChange returns a change of one of liqonet's objects. The API server does not allow all of them.
func randomChange(r *rand.Rand) kube.Change {
	c := kube.Change{
		Kind:   oneOf(r, "ConfigMap", "ConfigMap", "Secret", "Deployment", "Service", "DaemonSet", "PodDisruptionBudget", "Role", "Namespace"),
		Name:   oneOf(r, "fabric", "ipam", "peering-b", "peering-b", "peering2-b", "gateway-b", "gateway2-b", "status-b", "peering-c", "gateway-c", "node"),
		Action: oneOf(r, kube.Created, kube.Changed, kube.Changed, kube.Deleted),
	}
	for range r.IntN(5) {
		f := kube.FieldChange{
			Path: oneOf(r, "role", "mtu", "settings.mtu", "settings.gatewayMode", "settings.serviceType", "settings.later", "gateways[1]", "gateways[0].temporary",
				"gateways[0].tunnels[1]", "gateways[0].tunnels[0].tunnel.wireguard.publicKey", "gateways[0].tunnels[0].endpoints", "peer.podCIDRs[0].seen",
				"local", "exposed[0].address", "number", "overlay.kind", "podCIDRs", "spec.type", "spec.ports[0].port", "spec.template.spec.volumes",
				"spec.template.spec.containers[0].image", "metadata.annotations.liqonet.io/pods", "spec.template.spec.nodeSelector.disk", "data.privateKey"),
			Old: oneOf[any](r, nil, "a", float64(1), map[string]any{"a": "b"}), New: oneOf[any](r, nil, "c", []any{"d", "e"}, `{"labels":{"a":"b"}}`),
			Redacted: c.Kind == "Secret", Later: r.IntN(5) == 0,
		}
		if c.Name == "ipam" && r.IntN(2) == 0 {
			held := reservation{Range: netip.MustParsePrefix("10.71.0.0/16"), Owner: ipam.Peering("b"), Purpose: ipam.PeerPods}
			f = kube.FieldChange{Path: "reservations", Verb: "reserve", New: held}
		}
		c.Fields = append(c.Fields, f)
	}
	return c
}

// TestEachChangeHasALine: whatever a plan changes, a line covers it and the sum counts it; and each line covers
// something.
func TestEachChangeHasALine(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p Plan
		want, counts := make(map[ref]bool), make(map[kube.Action]int)
		for i := range 1 + r.IntN(2) {
			c := ClusterPlan{Context: string(rune('a' + i)), peerings: map[string]recorded{}}
			if b := (recorded{randomRecord(r), randomRecord(r)}); b != (recorded{}) {
				c.peerings["b"] = b
			}
			for j := range r.IntN(5) {
				change := randomChange(r)
				c.Changes = append(c.Changes, change)
				counts[change.Action]++
				for k := range change.Fields {
					want[ref{i, j, k}] = true
				}
				if change.Action != kube.Changed || len(change.Fields) == 0 {
					want[ref{i, j, -1}] = true
				}
			}
			p.Clusters = append(p.Clusters, c)
		}
		got := make(map[ref]bool)
		for _, l := range p.Intent() {
			for _, at := range l.covers {
				got[at] = true
			}
			if l.Subject == "" || l.Action != "" && len(l.covers) == 0 {
				t.Errorf("line %+v", l)
			}
		}
		assert.Equal(t, "fields with a line", want, got)
		sum := fmt.Sprintf("%s: %s to create, %d to change, %d to delete", Count(len(p.Clusters), "cluster"),
			Count(counts[kube.Created], "object"), counts[kube.Changed], counts[kube.Deleted])
		assert.Equal(t, "sum", sum, p.Sum())
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
}

// TestIntent: changes that belong together are one line, and a field that another program has changed has its own.
func TestIntent(t *testing.T) {
	peering := func(mtu int, gateways, tunnels int) *records.Peering {
		p := &records.Peering{Name: "b", Role: records.Client, MTU: mtu}
		for range gateways {
			p.Gateways = append(p.Gateways, records.LocalGateway{Tunnels: make([]records.Tunnel, tunnels)})
		}
		return p
	}
	field := func(path string, was, is any) kube.FieldChange {
		return kube.FieldChange{Path: path, Old: was, New: is}
	}
	changed := func(kind, name string, fields ...kube.FieldChange) kube.Change {
		return kube.Change{Kind: kind, Name: name, Action: kube.Changed, Fields: fields}
	}
	wider, narrower := peering(1420, 2, 2), peering(1300, 3, 2)
	narrower.Settings.MTU, narrower.Settings.ServiceType = new(1300), new(records.NodePort)
	peerBefore, peerAfter := peering(1420, 2, 2), peering(1300, 2, 3)
	peerBefore.Role, peerAfter.Role, peerAfter.Settings = records.Server, records.Server, narrower.Settings
	mtu := []kube.FieldChange{field("mtu", 1420.0, 1300.0), field("settings.mtu", nil, 1300.0), field("settings.serviceType", nil, "NodePort")}
	p := Plan{Clusters: []ClusterPlan{
		{Context: "a", peerings: map[string]recorded{"b": {wider, narrower}}, Changes: []kube.Change{
			changed("ConfigMap", "peering-b", append(mtu, field("gateways[2]", nil, map[string]any{}))...),
			{Kind: "Deployment", Name: "gateway3-b", Action: kube.Created}, {Kind: "Secret", Name: "peering3-b", Action: kube.Created},
			changed("Deployment", "gateway-b", field("spec.replicas", 0.0, 1.0)),
		}},
		{Context: "b", peerings: map[string]recorded{"a": {peerBefore, peerAfter}}, Changes: []kube.Change{
			changed("ConfigMap", "peering-a", append(mtu, field("gateways[0].tunnels[2]", nil, map[string]any{}))...),
			changed("Service", "gateway-a", field("spec.type", "LoadBalancer", "NodePort"), field("spec.sessionAffinity", "ClientIP", "None")),
		}},
	}}
	want := []string{
		"gateways of a                                     2 -> 3",
		"MTU                                               1420 (measured) -> 1300",
		"gw-server-service-type                            LoadBalancer (default) -> NodePort",
		"spec.replicas of Deployment gateway-b of a        0 -> 1",
		"spec.sessionAffinity of Service gateway-a of b   ClientIP -> None",
	}
	got := Columns(p.Intent(), Line.Flat)
	squeeze := func(lines []string) (all []string) {
		for _, l := range lines {
			all = append(all, strings.Join(strings.Fields(l), " "))
		}
		slices.Sort(all)
		return all
	}
	assert.Equal(t, "lines", squeeze(want), squeeze(got))
	assert.Equal(t, "sum", "2 clusters: 2 objects to create, 4 to change, 0 to delete", p.Sum())
}

// TestInterruption: a plan that replaces the tunnels has a note about lost packets.
func TestInterruption(t *testing.T) {
	for subject, want := range map[string]string{
		subjectServer: "packets between the clusters are lost for some seconds", subjectTunnel: "packets between the clusters can be lost for some seconds",
		subjectWireGuard: "packets between the clusters can be lost for some seconds", "mtu": "",
	} {
		var got string
		for _, note := range (&intent{lines: []Line{{Subject: subject, Action: kube.Changed}}}).notes() {
			got += note.New
		}
		assert.Equal(t, subject, want, got)
	}
}
