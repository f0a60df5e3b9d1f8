package trace

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// side is one cluster of the peering, as described by its records and reports.
type side struct {
	records.Set

	cluster    *kube.Cluster
	peering    records.Peering
	translator translate.Translator
	status     status.Peering
	reports    map[records.GatewayID]*records.Status // of gateways; only those with a report
}

// gather reads both sides of the peering of two clusters. Level view is sufficient.
func gather(ctx context.Context, o Options) (local, remote *side, err error) {
	clusters := []*kube.Cluster{o.Local, o.Remote}
	snapshots := read.All(ctx, clusters, status.Parts()...)
	if err := status.Complete(ctx, status.Options{Cluster: o.Local, Remote: o.Remote}, snapshots); err != nil {
		return nil, nil, err
	}
	states, err := status.Of("", snapshots...)
	if err != nil {
		return nil, nil, err
	}
	var sides [2]*side
	for i, c := range clusters {
		if sides[i], err = sideOf(c, snapshots[i], states[i]); err != nil {
			return nil, nil, err
		}
	}
	return sides[0], sides[1], nil
}

// sideOf returns one side from what was read of its cluster.
func sideOf(c *kube.Cluster, seen *observe.Snapshot, state status.Peering) (*side, error) {
	if err := seen.Lacks(observe.Leases); err != nil {
		return nil, err
	}
	s := &side{cluster: c, status: state, reports: seen.Statuses}
	objects := slices.Collect(maps.Values(seen.ConfigMaps))
	nodes := slices.SortedStableFunc(slices.Values(seen.Reports), func(a, b records.Node) int { return strings.Compare(a.Name, b.Name) })
	s.Set, _ = inventory.RecordSet(objects, nodes)
	i := slices.IndexFunc(s.Peerings, func(p records.Peering) bool { return p.Name == state.Peer })
	if i < 0 || s.Fabric == nil {
		return nil, fmt.Errorf("trace in cluster %q: %s", c.Context, state.Reason)
	}
	s.peering = s.Peerings[i]
	var err error
	s.translator, err = seen.Translator(s.peering.Name)
	return s, err
}

// node returns the first node report that matches; nil if there is none.
func (s *side) node(is func(records.Node) bool) *records.Node {
	if i := slices.IndexFunc(s.Nodes, is); i >= 0 {
		return &s.Nodes[i]
	}
	return nil
}

func named(name string) func(records.Node) bool {
	return func(n records.Node) bool { return n.Name == name }
}

// hasPod matches the node that reports an address as a pod's.
func hasPod(a netip.Addr) func(records.Node) bool {
	return func(n records.Node) bool { return cidr.Contains(n.PodCIDRs, a) || slices.Contains(n.Pods, a) }
}

// unused returns the reason for which a node does not use a gateway; "" if it does.
func (s *side) unused(id records.GatewayID, node string) string {
	report := s.reports[id]
	if report == nil {
		return "it has not reported"
	}
	if g := s.gateway(id.Number); g.State == health.Unknown || g.State == health.Down {
		return fmt.Sprintf("%s: %s", g.State, g.Reason)
	}
	if n := health.Node(report, node); n.Unused {
		return "the node uses others"
	}
	return ""
}

// gateway returns the health of a gateway.
func (s *side) gateway(number int) status.Gateway {
	if number > len(s.status.Gateways) {
		return status.Gateway{State: health.Unknown, Reason: "no report"}
	}
	return s.status.Gateways[number-1]
}
