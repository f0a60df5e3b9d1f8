package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// Init installs liqonet in a cluster, or completes or updates what is there, and returns when every Ready node
// has reported. Connect does it too: Init is for those who prepare a cluster for peers to come.
func Init(ctx context.Context, o InitOptions, r progress.Reporter) (InitResult, error) {
	do := func(ctx context.Context) (InitResult, error) { return initAs(ctx, o, o.Update, r) }
	return plan.Locked(ctx, r, do, &o.Side.Cluster)
}

// initAs is Init for a user who said update, or did not.
func initAs(ctx context.Context, o InitOptions, update bool, r progress.Reporter) (InitResult, error) {
	s := newSite(o.Side, o.Installation, r)
	s.update = update
	run := &progress.Stages{Reporter: r}
	if err := initialise(ctx, run, &s, o.Timeout); err != nil {
		return InitResult{}, err
	}
	return InitResult{
		Cluster: s.info(), Unverified: s.unverified, Stages: run.Times, Objects: s.changes, Changed: len(s.changes) > 0,
	}, nil
}

// PlanInit returns what Init would change, and changes nothing.
func PlanInit(ctx context.Context, o InitOptions, r progress.Reporter) (plan.Plan, error) {
	update := o.Update
	o.Side.Cluster, o.Update = o.Side.Cluster.DryRun(), true
	_, err := initAs(ctx, o, update, progress.Planning(r))
	return plan.Of(ctx, err, o.Side.Cluster)
}

func initialise(ctx context.Context, run *progress.Stages, s *site, timeout time.Duration) error {
	start := time.Now()
	early, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, 0))
	defer cancel()
	err := run.Run(early,
		progress.Step{Stage: progress.StageReach, Do: func(ctx context.Context) (string, error) { return s.cluster.Context, s.reach(ctx) }},
		progress.Step{Stage: progress.StageDiscover, Do: func(ctx context.Context) (string, error) {
			if err := s.discover(ctx); err != nil {
				return "", err
			}
			return s.described(), s.checkClashes(false)
		}})
	if err != nil {
		return err
	}
	rest, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, len(s.discovery.Nodes)))
	defer cancel()
	return run.Run(rest,
		progress.Step{Stage: progress.StageCompare, Do: s.compare},
		progress.Step{Stage: progress.StageInstall, Do: func(ctx context.Context) (string, error) {
			go s.nodes.follow(ctx, s.cluster)
			return "namespace " + s.cluster.Namespace, s.install(ctx)
		}},
		progress.Step{Stage: progress.StageNodes, Do: func(ctx context.Context) (string, error) {
			if err := s.settle(ctx); err != nil {
				return "", err
			}
			s.warnNotReady()
			return s.settled(), s.checkForward(false)
		}})
}

// compare refuses to change an installation that stands without the user's consent.
func (s *site) compare(ctx context.Context) (string, error) {
	if s.cluster.IsDryRun() {
		return "", nil
	}
	d := s.dry(s.cluster.DryRun())
	if err := d.install(ctx); err != nil {
		return "", err
	}
	if err := d.settle(ctx); err != nil {
		return "", err
	}
	planned, err := plan.Of(ctx, nil, d.cluster)
	if err != nil {
		return "", err
	}
	return plan.DecideDifferences(append(planned.Clusters[0].Differences(), s.unreserved...), s.options.Update)
}

// install applies the node helper, reserves the cluster's own ranges, and writes the fabric and what stands on it.
// The helpers come first: their pods start while the rest is written, and wait for it.
func (s *site) install(ctx context.Context) error {
	if err := s.applyBase(ctx); err != nil {
		return err
	}
	return s.writeFabric(ctx, func(records.Fabric) (records.Fabric, error) {
		err := s.reserveOwn(ctx)
		return s.wantedFabric(), err
	})
}

// reserveOwn reserves the cluster's own ranges.
func (s *site) reserveOwn(ctx context.Context) error {
	own := s.own
	err := inventory.AddReservations(ctx, s.cluster, s.found.fabric, func(r *ipam.Registry) (err error) {
		own.External, own.Internal, err = choose.ReserveOwn(r, s.own)
		return err
	})
	if err == nil {
		s.own = own
	}
	return err
}

// makeNamespace makes the namespace, unless the user may only use the installation that stands.
func (s *site) makeNamespace(ctx context.Context) error {
	base, err := s.base()
	if err != nil || s.standing != "" {
		return err
	}
	return s.apply(ctx, s.found.fabric != nil, base[0])
}

// applyBase applies the objects of the installation, unless the user may only use the one that stands.
func (s *site) applyBase(ctx context.Context) error {
	if s.standing != "" {
		return s.keepInstallation()
	}
	base, err := s.base()
	if err != nil {
		return err
	}
	return s.apply(ctx, s.found.fabric != nil, base...)
}

// settle waits for the nodes' reports, decides what depends on them and completes the fabric.
func (s *site) settle(ctx context.Context) error {
	if err := s.awaitReports(ctx); err != nil {
		if errors.Is(err, kube.ErrLater) {
			return s.assume(ctx)
		}
		return err
	}
	for _, name := range s.nodes.all() {
		if why := s.absent(name); why != "" {
			s.unverified = append(s.unverified, UnverifiedNode{name, why})
		}
	}
	err := s.writeFabric(ctx, func(f records.Fabric) (records.Fabric, error) {
		decided, err := withReports(f, s.reporting(), s.options.Overlay, s.raises())
		switch {
		case err != nil:
			return f, fmt.Errorf("cluster %q: %w", s.cluster.Context, err)
		case f.Overlay.Kind != "" && !s.options.Update && !inventory.Same(f, decided):
			return f, plan.Overtaken(s.cluster, records.FabricName, f, decided)
		}
		return decided, nil
	})
	if err != nil {
		return err
	}
	return s.checkInUse()
}

// assume decides without the reports of nodes what the user decides, where nothing was decided before: a dry run cannot
// wait for them.
func (s *site) assume(ctx context.Context) error {
	if s.assumedMTU == 0 && s.options.Overlay == "" {
		return nil
	}
	return s.writeFabric(ctx, func(f records.Fabric) (records.Fabric, error) {
		f.Overlay.Kind = cmp.Or(f.Overlay.Kind, s.options.Overlay)
		if f.MTU == 0 && s.assumedMTU > 0 {
			f.MTU = s.assumedMTU + health.TunnelOverhead
		}
		return f, nil
	})
}

// settled describes what settle decided.
func (s *site) settled() string {
	return fmt.Sprintf("%s: %d nodes, %s, MTU %d", s.name, len(s.found.reports), s.fabric.Overlay.Kind, s.fabric.MTU)
}

// awaitReports waits until every Ready node reports, and after an update until the new helpers run. When it gets late,
// the nodes that report are enough.
func (s *site) awaitReports(ctx context.Context) error {
	part := mostOfTime
	if s.connecting {
		part = halfOfTime
	}
	defer s.nodes.patience(ctx, part)()
	return s.cluster.FailWhen(ctx, templates.NodePods(), s.nodes.judge, func(ctx context.Context) error {
		if !s.cluster.IsDryRun() && changedObject(s.changes, "DaemonSet") {
			if err := s.awaitHelpers(ctx); err != nil {
				return err
			}
		}
		what := fmt.Sprintf("the reports of the nodes of cluster %q", s.cluster.Context)
		return kube.Wait(ctx, s.cluster, kube.Labelled(inventory.Selector(records.ComponentNode)), what, func(leases []*coordinationv1.Lease) (string, error) {
			if err := s.takeReports(leases); err != nil {
				return "", err
			}
			nodes := s.nodes.demanded(s.reports)
			if len(nodes) == 0 {
				return "no node is Ready", nil
			}
			return inventory.NotYet(slices.DeleteFunc(nodes, s.reports)), nil
		})
	})
}

// Parts of the time that is left in which all nodes are waited for. Nodes that do not report must leave connect enough
// to verify the others.
const (
	mostOfTime = 0.9
	halfOfTime = 0.5
)

// awaitHelpers waits until the helpers of the newest version are ready. A DaemonSet whose pods cannot start on some
// nodes stops replacing those of others: helpers of two versions work together.
func (s *site) awaitHelpers(ctx context.Context) error {
	wanted := func() int {
		if s.nodes.isLate() {
			return 0
		}
		return len(s.nodes.awaited())
	}
	err := s.cluster.WaitDaemonSet(ctx, records.NodeName, wanted)
	if err == nil && s.nodes.isLate() {
		s.reporter.Warn(fmt.Sprintf("cluster %q: not all node helpers are updated yet", s.cluster.Context),
			fmt.Sprintf("kubectl -n %s --context %s rollout status daemonset/%s", s.cluster.Namespace, kube.ShellWord(s.cluster.Context), records.NodeName))
	}
	return err
}

// reporting are the reports of Ready nodes: those of others are of no use to decide by.
func (s *site) reporting() []records.Node {
	ready := s.nodes.all()
	return slices.DeleteFunc(slices.Clone(s.found.reports), func(n records.Node) bool {
		return !slices.Contains(ready, n.Name)
	})
}

// warnNotReady names the nodes that are skipped.
func (s *site) warnNotReady() {
	if silent := s.nodes.notReady(); len(silent) > 0 {
		s.reporter.Warn(fmt.Sprintf("cluster %q: skipping node %s: not Ready", s.cluster.Context, strings.Join(silent, ", ")),
			"a node that becomes Ready takes part by itself")
	}
}

// absent says why nothing is known of a node; "": it has reported.
func (s *site) absent(node string) string {
	why := s.nodes.problem(node)
	if why == "" && !s.reports(node) {
		why = "its helper has not reported"
	}
	return why
}

// reports reports whether a node has reported. A report of an emptied kernel is one of the installation before.
func (s *site) reports(node string) bool {
	return slices.ContainsFunc(s.found.reports, func(n records.Node) bool { return n.Name == node && !n.Clean && n.MTU > 0 })
}

// changedObject reports whether an object of that kind that existed was changed.
func changedObject(changes []kube.Change, kind string) bool {
	return slices.ContainsFunc(changes, func(c kube.Change) bool {
		return c.Kind == kind && c.Action == kube.Changed
	})
}
