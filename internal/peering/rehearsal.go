package peering

import (
	"context"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam"
)

// dry is a copy of the site for a dry run, in which all changes are wanted.
func (s site) dry(cluster *kube.Cluster) site {
	s.cluster, s.options.Update, s.reporter, s.changes = cluster, true, progress.Quiet{}, nil
	return s
}

// dry is a copy of the connector for a dry run of what follows the comparison.
func (c *connector) dry(of func(*kube.Cluster) *kube.Cluster) *connector {
	local, remote := *c.local, *c.remote
	local.site, remote.site = local.dry(of(local.cluster)), remote.dry(of(remote.cluster))
	local.peer, remote.peer = &remote, &local
	for _, e := range []*end{&local, &remote} {
		e.rekeyed = slices.Clone(e.rekeyed)
	}
	d := *c
	d.reporter, d.local, d.remote = progress.Quiet{}, &local, &remote
	return &d
}

// rehearse carries out what writes.
func (c *connector) rehearse(ctx context.Context) error {
	if _, err := c.install(ctx); err != nil {
		return err
	}
	if err := c.both(ctx, (*end).settle); err != nil {
		return err
	}
	if _, err := c.prepare(ctx); err != nil {
		return err
	}
	if _, err := c.configure(ctx); err != nil {
		return err
	}
	return c.both(ctx, (*end).releaseGateways)
}

// newReservations lists ranges that the user wants reserved and that are not yet, and pools that are others.
func (s *site) newReservations() []string {
	if s.found.fabric == nil {
		return nil
	}
	var lines []string
	if pools := s.found.registry.Pools(); s.side.Pools != nil && !slices.Equal(s.side.Pools, pools) {
		lines = append(lines, fmt.Sprintf("cluster %q: pools: %s -> %s", s.cluster.Context, joined(pools), joined(s.side.Pools)))
	}
	for _, p := range s.side.Reserved {
		same := func(held ipam.Reservation) bool { return held.Range == p.Masked() }
		if !slices.ContainsFunc(s.found.registry.Held(ipam.Cluster, ipam.Reserved), same) {
			lines = append(lines, fmt.Sprintf("cluster %q: %s is not reserved yet", s.cluster.Context, p.Masked()))
		}
	}
	return lines
}
