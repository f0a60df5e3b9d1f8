package peering

import (
	"context"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam"
)

// dry returns a copy of the site for a dry run, in which all changes are allowed.
func (s site) dry(cluster *kube.Cluster) site {
	s.cluster, s.options.Update, s.reporter, s.changes = cluster, true, progress.Quiet{}, nil
	return s
}

// dry returns a copy of the connector for a dry run of the steps after the comparison.
func (c *connector) dry(of func(*kube.Cluster) *kube.Cluster) *connector {
	local, remote := *c.local, *c.remote
	local.site, remote.site = local.dry(of(local.cluster)), remote.dry(of(remote.cluster))
	d := *c
	for _, m := range []*member{&local, &remote} {
		m.replaced = slices.Clone(m.replaced)
	}
	d.reporter, d.local, d.remote = progress.Quiet{}, &local, &remote
	return &d
}

// applyAll runs the steps that write.
func (c *connector) applyAll(ctx context.Context) error {
	nodes := func(ctx context.Context) (string, error) { return "", c.both(ctx, (*member).awaitNodes) }
	if err := inOrder(ctx, c.install, nodes, c.prepare, c.configure); err != nil {
		return err
	}
	return c.both(ctx, (*member).releaseGateways)
}

// newReservations lists requested reservations that do not exist yet, and a change of the pools.
func (s *site) newReservations() []string {
	if s.observed.fabric == nil {
		return nil
	}
	var lines []string
	if pools := s.observed.registry.Pools(); s.side.Pools != nil && !slices.Equal(s.side.Pools, pools) {
		lines = append(lines, fmt.Sprintf("cluster %q: pools: %s -> %s", s.cluster.Context, plan.Joined(pools), plan.Joined(s.side.Pools)))
	}
	for _, p := range s.side.Reserved {
		same := func(held ipam.Reservation) bool { return held.Range == p.Masked() }
		if !slices.ContainsFunc(s.observed.registry.Held(ipam.Cluster, ipam.Reserved), same) {
			lines = append(lines, fmt.Sprintf("cluster %q: %s is not reserved yet", s.cluster.Context, p.Masked()))
		}
	}
	return lines
}
