package peering

import (
	"context"
	"slices"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// dry returns a copy of the site for a dry run.
func (s site) dry(cluster *kube.Cluster) site {
	s.cluster, s.reporter, s.changes = cluster, progress.Quiet{}, nil
	return s
}

// dry returns a copy of the connector for a dry run of the steps after the comparison.
func (c *connector) dry(of func(*kube.Cluster) *kube.Cluster) *connector {
	local, remote := *c.local, *c.remote
	local.site, remote.site = local.dry(of(local.cluster)), remote.dry(of(remote.cluster))
	d := *c
	d.turn = nil // no address is reserved
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
