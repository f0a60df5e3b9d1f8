//go:build linux

package gateway

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// TestNodeRecords checks that one node's damaged or false report does not affect other nodes.
func TestNodeRecords(t *testing.T) {
	s := tools.NewStore(tools.MetaNamespaceKeyFunc)
	for name, report := range map[string]string{
		"node-7":   `{"version":1,"name":"n1","number":7,"mtu":1500}`,
		"node-8":   `{"version":1,"name":[}`,
		"node-9":   "", // has not reported yet
		"node-256": `{"version":1,"name":"n2","number":256,"mtu":1500}`,
	} {
		holder := "n1"
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"liqonet.io/node": report}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		require.NoError(t, s.Add(lease))
	}
	nodes, errs := new(nodeReports).read(s, sample.Fabric().InternalCIDR())
	err := errors.Join(errs...)
	if len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes %v", nodes)
	}
	for _, refused := range []string{"read Lease node-8", "read Lease node-256"} {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("error %v, want %q", err, refused)
		}
	}
}

func TestSortNodes(t *testing.T) {
	nodes := []reportedNode{
		{Node: &records.Node{Name: "b", Number: 3}},
		{Node: &records.Node{Name: "a", Number: 9}},
		{Node: &records.Node{Name: "a", Number: 2}},
	}
	slices.SortFunc(nodes, reportedNode.compare)
	got := make([]string, 0, len(nodes))
	for _, n := range nodes {
		got = append(got, fmt.Sprint(n.Name, n.Number))
	}
	assert.Equal(t, "order", []string{"a2", "a9", "b3"}, got)
}

// TestPodOfTwoNodes checks that a pod that a dead node still reports is reached on its new node, whatever the names of
// the nodes.
func TestPodOfTwoNodes(t *testing.T) {
	const pod = "10.244.9.3"
	numbers := map[string]int{"a": 7, "z": 8}
	address := func(name string) netip.Addr {
		return records.NodeAddress(sample.Fabric().InternalCIDR(), numbers[name])
	}
	for _, test := range []struct{ dead, alive string }{{"a", "z"}, {"z", "a"}} {
		s := tools.NewStore(tools.MetaNamespaceKeyFunc)
		for name, version := range map[string]string{test.dead: "998", test.alive: "1002"} {
			require.NoError(t, s.Add(sample.LeaseOf(t, records.Node{
				Name: name, Number: numbers[name], Pods: parsed.Addresses(pod),
				OverlaySources: map[records.GatewayID]netip.Addr{sample.FirstGateway("b"): address(name)},
			}, version)))
		}
		nodes, refused := new(nodeReports).read(s, sample.Fabric().InternalCIDR())
		if len(refused) > 0 {
			t.Fatal(refused)
		}
		v := view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering(), nodes: nodes}
		state := v.state()
		var ways []uint32
		for _, r := range state.Routes {
			if r.Table == netops.FromPeer && r.Dst == netip.MustParsePrefix(pod+"/32") {
				ways = append(ways, r.Nexthop)
			}
		}
		if want := []uint32{netops.NexthopID(v.fabric.InternalCIDR(), address(test.alive))}; !cmp.Equal(ways, want) {
			t.Errorf("%s died, %s has the pod: routes to nexthops %x, want %x", test.dead, test.alive, ways, want)
		}
	}
}

// TestReportsAreKept checks that the cached reports equal a full read of all reports after any changes: the readable
// reports, in order, and how many nodes report a range.
func TestReportsAreKept(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, r := tools.NewStore(tools.MetaNamespaceKeyFunc), new(nodeReports)
	most := 0
	var before, copied []reportedNode
	for round := range 2000 {
		i := random.IntN(5)
		holder := fmt.Sprintf("n%d", i)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: records.NodeLeaseName(i + 1), ResourceVersion: fmt.Sprint(round)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		report := fmt.Sprintf(`{"version":1,"name":"n%d","number":%d,"mtu":1500,"pods":["10.244.9.%d","10.244.9.%d"]}`,
			i, i+1, random.IntN(6), random.IntN(6))
		var err error
		switch random.IntN(6) {
		case 0:
			err = s.Delete(lease)
		case 1, 2:
			report = []string{"damaged", ""}[random.IntN(2)]
			fallthrough
		default:
			lease.Annotations = map[string]string{records.AnnotationNode: report}
			err = s.Add(lease)
		}
		require.NoError(t, err)
		if random.IntN(3) == 0 {
			continue // several changes in one pass
		}
		nodes, refused := r.read(s, sample.Fabric().InternalCIDR())
		anew, refusedAnew := new(nodeReports).read(s, sample.Fabric().InternalCIDR())
		if diff := cmp.Diff(anew, nodes, cmp.AllowUnexported(reportedNode{}), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || len(refused) != len(refusedAnew) {
			t.Fatalf("round %d: %d and %d refused, reports read anew (-), kept (+):\n%s", round, len(refusedAnew), len(refused), diff)
		}
		if !slices.Equal(before, copied) {
			t.Fatalf("round %d: what the pass before was given has changed", round)
		}
		before, copied = nodes, slices.Clone(nodes)
		want := claimants{}
		for _, n := range nodes {
			want.add(n.Node, 1)
		}
		if diff := cmp.Diff(want, r.claims); diff != "" {
			t.Fatalf("round %d: of all reports (-), kept (+):\n%s", round, diff)
		}
		most = max(most, len(nodes))
	}
	if most < 3 {
		t.Errorf("%d reports at most could be read", most)
	}
}

// BenchmarkNodeReports reads the reports in a cluster of 5,000 nodes of which one has changed.
func BenchmarkNodeReports(b *testing.B) {
	s, r := tools.NewStore(tools.MetaNamespaceKeyFunc), new(nodeReports)
	write := func(i, pod int) {
		require.NoError(b, s.Add(sample.LeaseOf(b, records.Node{
			Name: fmt.Sprintf("node-%d", i), Number: i + 1,
			Pods: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, byte(pod >> 8), byte(pod)})},
		}, fmt.Sprint(pod))))
	}
	for i := range 5000 {
		write(i, i)
	}
	nodes, _ := r.read(s, sample.Fabric().InternalCIDR())
	v := view{nodes: nodes}
	for i := 0; b.Loop(); i++ {
		write(i%5000, 5000+i)
		nodes, refused := r.read(s, sample.Fabric().InternalCIDR())
		if len(refused) > 0 {
			b.Fatal(refused)
		}
		next := view{nodes: nodes, claims: r.claims}
		if come := next.without(v); len(come) != 1 {
			b.Fatalf("%d reports changed", len(come))
		}
		v = next
	}
}
