//go:build linux

package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// TestRoutesToNodes checks that updating the routes from some reports has the same result as from all reports: with
// moving pods, pods of two nodes at once, and nodes that come and go.
func TestRoutesToNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const nodes, pods, rounds = 6, 12, 1000
	report := func(i int) *records.Node {
		n := &records.Node{
			Name: fmt.Sprintf("n%d", i), Number: i + 1, PodCIDRs: parsed.Prefixes(fmt.Sprintf("10.244.%d.0/24", i)),
			OverlaySources: map[records.GatewayID]netip.Addr{sample.FirstGateway("b"): netip.AddrFrom4([4]byte{172, 31, byte(1 + random.IntN(8)/7), byte(i)})},
		}
		for range random.IntN(3) {
			n.Pods = append(n.Pods, netip.AddrFrom4([4]byte{10, 244, 99, byte(random.IntN(pods))}))
		}
		slices.SortFunc(n.Pods, netip.Addr.Compare)
		n.Pods = slices.Compact(n.Pods)
		return n
	}
	v := view{id: sample.FirstGateway("b"), fabric: sample.Fabric(), peering: sample.Peering(), pod: netip.MustParseAddr("10.244.1.9")}
	short := 0
	for round := range rounds {
		next := v
		next.nodes = slices.Clone(v.nodes)
		for range 1 + random.IntN(2) {
			i := random.IntN(nodes)
			if at := slices.IndexFunc(next.nodes, func(n reportedNode) bool { return n.Name == fmt.Sprintf("n%d", i) }); at >= 0 && random.IntN(5) == 0 {
				next.nodes[at].version = fmt.Sprint(1000 + round) // the same report, rewritten
				continue
			}
			next.nodes = slices.DeleteFunc(next.nodes, func(n reportedNode) bool { return n.Name == fmt.Sprintf("n%d", i) })
			if random.IntN(10) > 0 {
				next.nodes = append(next.nodes, reportedNode{Node: report(i), version: fmt.Sprint(1000 + round)})
			}
		}
		slices.SortFunc(next.nodes, reportedNode.compare)
		next.claims = claimants{}
		for _, n := range next.nodes {
			next.claims.add(n.Node, 1)
		}
		plan, ok := v.routesTo(next)
		if ok {
			short++
			want := routesOf(v.state())
			for _, s := range plan.Steps {
				r := s.Object.(netops.Route)
				key := fmt.Sprint(r.Table, r.Dst)
				if _, there := want[key]; there != (s.Op != netops.Add) {
					t.Fatalf("round %d: %s, while the route is there: %t", round, s, there)
				}
				if want[key] = r; s.Op == netops.Remove {
					delete(want, key)
				}
			}
			if diff := cmp.Diff(routesOf(next.state()), want, cmp.Comparer(func(a, b netops.Route) bool { return a == b })); diff != "" {
				t.Fatalf("round %d: routes, -of all reports +of the changed ones:\n%s", round, diff)
			}
		}
		v = next
	}
	if short < rounds/10 || short == rounds {
		t.Errorf("%d of %d changes concern routes alone", short, rounds)
	}
}

// routesOf returns the routes of a state, by table and destination.
func routesOf(s netops.State) map[string]netops.Route {
	all := map[string]netops.Route{}
	for _, r := range s.Routes {
		all[fmt.Sprint(r.Table, r.Dst)] = r
	}
	return all
}
