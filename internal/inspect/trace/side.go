package trace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
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
	states, err := status.Read(ctx, status.Options{Cluster: o.Local, Remote: o.Remote})
	if err != nil {
		return nil, nil, err
	}
	sides := []*side{{cluster: o.Local}, {cluster: o.Remote}}
	err = progress.EachOf([]int{0, 1}, func(i int) error {
		sides[i].status = states[i]
		return sides[i].read(ctx)
	})
	return sides[0], sides[1], err
}

func (s *side) read(ctx context.Context) error {
	all, err := kube.All[*corev1.ConfigMap](ctx, s.cluster, "")
	if err != nil {
		return err
	}
	leases, err := inventory.Leases(ctx, s.cluster)
	if err != nil {
		return err
	}
	nodes, _ := inventory.Reports(leases) // damaged ones are skipped, as by gateways
	slices.SortFunc(nodes, func(a, b records.Node) int { return strings.Compare(a.Name, b.Name) })
	s.Set, _ = inventory.RecordSet(all, nodes)
	i := slices.IndexFunc(s.Peerings, func(p records.Peering) bool { return p.Name == s.status.Peer })
	if i < 0 || s.Fabric == nil {
		return fmt.Errorf("trace in cluster %q: %s", s.cluster.Context, s.status.Reason)
	}
	s.peering = s.Peerings[i]
	s.reports = make(map[records.GatewayID]*records.Status)
	for _, id := range s.peering.GatewayIDs() {
		for _, object := range all {
			if report, err := records.Read[records.Status](object.Name, object.Labels, object.Data); err == nil && object.Name == id.StatusName() {
				s.reports[id] = &report
			}
		}
	}
	translation, err := translate.Read(all)
	if err != nil {
		return fmt.Errorf("records of cluster %q: %w", s.cluster.Context, err)
	}
	s.translator, err = translation.Peer(s.peering.Name)
	return err
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
	if n, _ := health.Node(report, node); n.Unused {
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
