//go:build linux

package helper

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// TestNodeRecords: one node's damaged or false report costs no other node.
func TestNodeRecords(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, report := range map[string]string{
		"node-10.80.0.7": "version: 1\nname: n1\ninternal: 10.80.0.7\nmtu: 1500\nkernel: {release: r, wireGuard: true, geneve: true, vxlan: true}\n",
		"node-10.80.0.8": "version: 1\nname: [\n",
		"node-10.80.0.9": "", // has not reported yet
		"node-10.80.1.0": "version: 1\nname: n2\ninternal: 10.80.1.0\nmtu: 1500\nkernel: {release: r, wireGuard: true, geneve: true, vxlan: true}\n",
	} {
		holder := "n1"
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"liqonet.io/node": report}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		if err := s.Add(lease); err != nil {
			t.Fatal(err)
		}
	}
	nodes, errs := new(nodeReports).read(s)
	err := errors.Join(errs...)
	if len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes %v", nodes)
	}
	for _, refused := range []string{"read Lease node-10.80.0.8", "read Lease node-10.80.1.0"} {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("error %v, want %q", err, refused)
		}
	}
}

func TestSortNodes(t *testing.T) {
	nodes := []reportedNode{
		{Node: &records.Node{Name: "b", Internal: netip.MustParseAddr("10.80.0.3")}},
		{Node: &records.Node{Name: "a", Internal: netip.MustParseAddr("10.80.0.9")}},
		{Node: &records.Node{Name: "a", Internal: netip.MustParseAddr("10.80.0.2")}},
	}
	sortNodes(nodes)
	got := make([]string, 0, len(nodes))
	for _, n := range nodes {
		got = append(got, n.Name+" "+n.Internal.String())
	}
	if diff := cmp.Diff([]string{"a 10.80.0.2", "a 10.80.0.9", "b 10.80.0.3"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestPodOfTwoNodes: a node that died still reports a pod that has come back on another one, where the peer then
// reaches it, whatever the nodes are called.
func TestPodOfTwoNodes(t *testing.T) {
	const pod = "10.244.9.3"
	names := map[string]netip.Addr{"a": netip.MustParseAddr("10.80.0.7"), "z": netip.MustParseAddr("10.80.0.8")}
	for _, test := range []struct{ dead, alive string }{{"a", "z"}, {"z", "a"}} {
		s := cache.NewStore(cache.MetaNamespaceKeyFunc)
		for name, version := range map[string]string{test.dead: "998", test.alive: "1002"} {
			text, err := records.Encode(records.Node{
				Version: records.SchemaVersion, Name: name, Internal: names[name], MTU: 1500, Kernel: records.Capabilities{Release: "r"},
				Pods: addrs(pod), OverlaySources: map[records.GatewayID]netip.Addr{firstGateway("b"): names[name]},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Add(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{
					Name: records.AddressLeaseName(names[name]), ResourceVersion: version, Annotations: map[string]string{records.AnnotationNode: text},
				},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &name},
			}); err != nil {
				t.Fatal(err)
			}
		}
		nodes, refused := new(nodeReports).read(s)
		if len(refused) > 0 {
			t.Fatal(refused)
		}
		sortNodes(nodes)
		v := gatewayView{id: firstGateway("b"), fabric: testFabric(), peering: testPeering(), nodes: nodes}
		state := v.state()
		var ways []uint32
		for _, r := range state.Routes {
			if r.Table == netops.FromPeer && r.Dst == netip.MustParsePrefix(pod+"/32") {
				ways = append(ways, r.Nexthop)
			}
		}
		if want := []uint32{netops.NexthopID(v.fabric.InternalCIDR, names[test.alive])}; !cmp.Equal(ways, want) {
			t.Errorf("%s died, %s has the pod: routes to nexthops %x, want %x", test.dead, test.alive, ways, want)
		}
	}
}

// TestClaimants: how many nodes report a range is known without a look at all of them, whatever becomes of the reports.
func TestClaimants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, r := cache.NewStore(cache.MetaNamespaceKeyFunc), new(nodeReports)
	most := 0
	for round := range 2000 {
		i := random.IntN(5)
		holder := fmt.Sprintf("n%d", i)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-10.80.0.%d", i+1)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		report := fmt.Sprintf("version: 1\nname: n%d\ninternal: 10.80.0.%d\nmtu: 1500\nkernel: {release: r}\npods: [10.244.9.%d, 10.244.9.%d]\n",
			i, i+1, random.IntN(6), random.IntN(6))
		var err error
		switch random.IntN(6) {
		case 0:
			err = s.Delete(lease)
		case 1:
			report = "damaged"
			fallthrough
		default:
			lease.Annotations = map[string]string{records.AnnotationNode: report}
			err = s.Add(lease)
		}
		if err != nil {
			t.Fatal(err)
		}
		nodes, _ := r.read(s)
		want := claimants{}
		for _, n := range nodes {
			want.add(n.Node, 1)
		}
		if diff := cmp.Diff(want, r.claims); diff != "" {
			t.Fatalf("round %d: of all reports (-), kept (+):\n%s", round, diff)
		}
		most = max(most, len(nodes))
	}
	if most < 4 {
		t.Errorf("%d reports at most could be read", most)
	}
}
