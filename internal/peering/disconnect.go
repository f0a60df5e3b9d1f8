package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Disconnect removes a peering from both clusters, or from the local one alone, and returns when the kernels of
// the nodes and the API servers have nothing of it left. What is not there is no error: the result says what was.
func Disconnect(ctx context.Context, o DisconnectOptions, r Reporter) (Disconnection, error) {
	d, err := disconnect(ctx, o, r)
	if d == nil {
		return Disconnection{}, err
	}
	return d.result(), err
}

// PlanDisconnect returns what Disconnect would change, and changes nothing.
func PlanDisconnect(ctx context.Context, o DisconnectOptions, r Reporter) (Plan, error) {
	o.Local.Cluster = o.Local.Cluster.DryRun()
	if o.Remote.Cluster != nil {
		o.Remote.Cluster = o.Remote.Cluster.DryRun()
	}
	d, err := disconnect(ctx, o, planning{r})
	if err != nil {
		return Plan{}, err
	}
	var clusters []*cluster.Cluster
	for _, s := range d.sides() {
		clusters = append(clusters, s.cluster)
	}
	return planOf(ctx, clusters...)
}

// disconnect carries out a Disconnect; nil where the options are refused.
func disconnect(ctx context.Context, o DisconnectOptions, r Reporter) (*disconnector, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	d := &disconnector{DisconnectOptions: o, stages: stages{reporter: r}}
	d.local = leaving{withdrawal: withdrawal{cluster: o.Local.Cluster, reporter: r}, name: o.Local.Name}
	d.remote = leaving{withdrawal: withdrawal{cluster: o.Remote.Cluster, reporter: r}, name: o.Remote.Name}
	err := d.stages.run(ctx, stageReach, "", d.reach)
	if err == nil {
		err = d.stages.run(ctx, stageWithdraw, "", d.each((*withdrawal).end))
	}
	if err == nil {
		err = d.stages.run(ctx, stageClean, "", d.each((*withdrawal).clean))
	}
	return d, err
}

func (o DisconnectOptions) validate() error {
	switch {
	case o.Remote.Cluster == nil && !o.OneSide:
		return withHint(errors.New("the remote cluster is required"),
			"name it with --remote-context or --remote-kubeconfig, or leave it as it is with --one-side")
	case o.Remote.Cluster == nil && o.Peer == "":
		return withHint(errors.New("a peer is required"), "liqoctl network status lists the peers")
	case o.Peer == "":
		return nil
	}
	if err := records.ValidateName(o.Peer); err != nil {
		return &InputError{Err: fmt.Errorf("peering: %w", err)}
	}
	return nil
}

// disconnector is a disconnect on its way.
type disconnector struct {
	DisconnectOptions
	stages        stages
	local, remote leaving
}

// leaving is one side of it.
type leaving struct {
	withdrawal
	id    string
	name  string   // by which peers know the cluster, or would if it had been installed
	peers []string // names of the peerings to remove
}

// sides are those from which something is to be removed.
func (d *disconnector) sides() []*leaving {
	if d.OneSide {
		return []*leaving{&d.local}
	}
	return []*leaving{&d.local, &d.remote}
}

// reach finds out which clusters these are and what they call each other.
func (d *disconnector) reach(ctx context.Context) (string, error) {
	group, inner := errgroup.WithContext(ctx)
	for _, s := range []*leaving{&d.local, &d.remote} {
		if s.cluster != nil {
			group.Go(func() error { return s.identify(inner) })
		}
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	group, inner = errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		d.local.peers, err = d.findLocal(inner)
		return err
	})
	if !d.OneSide {
		group.Go(func() error {
			all, err := traces(inner, d.remote.cluster)
			d.remote.peers = tracesOf(all, d.local.id, d.local.name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	for _, s := range d.sides() {
		if len(s.peers) > 0 {
			continue
		}
		// Nothing to remove is success, unless it is elsewhere.
		if _, err := checkElsewhere(ctx, s.cluster); err != nil {
			return "", err
		}
	}
	return strings.Join(d.describe(), "; "), nil
}

// identify reads which cluster this is.
func (s *leaving) identify(ctx context.Context) error {
	if _, err := s.cluster.Version(ctx); err != nil {
		return err
	}
	// First: what is missing is told all at once.
	if err := checkPermissions(ctx, s.cluster, templates.Operate); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.id, err = s.cluster.ID(ctx)
		return err
	})
	group.Go(func() error {
		fabric, err := readFabric(ctx, s.cluster)
		if err != nil {
			return err
		}
		s.name, err = chooseName(Side{Cluster: s.cluster, Name: s.name}, fabric)
		return err
	})
	return group.Wait()
}

// findLocal returns what the local cluster has of the peering in question.
func (d *disconnector) findLocal(ctx context.Context) ([]string, error) {
	all, err := traces(ctx, d.local.cluster)
	if err != nil {
		return nil, err
	}
	if d.Peer == "" {
		return tracesOf(all, d.remote.id, d.remote.name), nil
	}
	i := slices.IndexFunc(all, func(t trace) bool { return t.name == d.Peer })
	if i < 0 {
		return nil, nil
	}
	if known := all[i].clusterID; known != "" && d.remote.id != "" && known != d.remote.id {
		return nil, withHint(
			fmt.Errorf("peering %q of cluster %q is not with cluster %q", d.Peer, d.local.cluster.Context, d.remote.cluster.Context),
			"see liqoctl network status, or name another cluster with --remote-context")
	}
	return []string{d.Peer}, nil
}

// describe tells what was found.
func (d *disconnector) describe() []string {
	sides := d.sides()
	lines := make([]string, 0, len(sides))
	for _, s := range sides {
		text := "no such peering"
		if len(s.peers) > 0 {
			text = strings.Join(s.peers, ", ")
		}
		lines = append(lines, s.cluster.Context+": "+text)
	}
	return lines
}

// each makes a stage of a step for every peering on every side, all sides at once. A side that fails does not
// stop the other.
func (d *disconnector) each(step func(*withdrawal, context.Context, string) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		sides := d.sides()
		errs := make([]error, len(sides))
		var group errgroup.Group
		for i, s := range sides {
			group.Go(func() error {
				for _, name := range s.peers {
					errs[i] = errors.Join(errs[i], step(&s.withdrawal, ctx, name))
				}
				return nil
			})
		}
		_ = group.Wait() // the errors are in errs
		return "", errors.Join(errs...)
	}
}

func (d *disconnector) result() Disconnection {
	local := d.local.removal(d.local.peers)
	r := Disconnection{Local: &local, Stages: d.stages.times, Changed: d.local.altered()}
	if !d.OneSide {
		remote := d.remote.removal(d.remote.peers)
		r.Remote = &remote
		r.Changed = r.Changed || d.remote.altered()
	}
	return r
}

// altered reports whether anything was removed.
func (w *withdrawal) altered() bool { return len(w.changes) > 0 || len(w.released) > 0 }

// readyNodes are the names of a cluster's Ready nodes.
func readyNodes(ctx context.Context, c *cluster.Cluster) (map[string]bool, error) {
	nodes, err := cluster.All[*corev1.Node](ctx, c, "")
	if err != nil {
		return nil, err
	}
	ready := make(map[string]bool)
	for _, n := range nodes {
		if nodeReady(n) {
			ready[n.Name] = true
		}
	}
	return ready, nil
}
