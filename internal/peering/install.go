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
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// Init installs, completes or updates liqonet in a cluster, and returns when every Ready node has reported. Connect
// installs as well; Init prepares a cluster for later peers.
func Init(ctx context.Context, o InitOptions, r progress.Reporter) (InitResult, error) {
	return plan.Locked(ctx, r, func(ctx context.Context) (InitResult, error) {
		s := newSite(o.Side, o.Installation, r)
		run := &progress.Stages{Reporter: r}
		if err := initialise(ctx, run, &s, o.Timeout); err != nil {
			return InitResult{}, err
		}
		return InitResult{
			Cluster: s.info(), Unverified: s.unverified, Stages: run.Times, Objects: s.changes, Changed: len(s.changes) > 0,
		}, nil
	}, &o.Side.Cluster)
}

// PlanInit returns the changes that Init would make. It changes nothing.
func PlanInit(ctx context.Context, o InitOptions, r progress.Reporter) (plan.Plan, error) {
	o.Side.Cluster = o.Side.Cluster.DryRun()
	_, err := Init(ctx, o, progress.Planning(r))
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
			return s.summary(), s.checkConflicts(false)
		}})
	if err != nil {
		return err
	}
	rest, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, len(s.discovery.Nodes)))
	defer cancel()
	return run.Run(rest,
		progress.Step{Stage: progress.StageCompare, Do: s.compare},
		progress.Step{Stage: progress.StageInstall, Do: func(ctx context.Context) (string, error) {
			go s.nodes.watch(ctx, s.cluster)
			return "namespace " + s.cluster.Namespace, s.install(ctx)
		}},
		progress.Step{Stage: progress.StageNodes, Do: func(ctx context.Context) (string, error) {
			if err := s.awaitNodes(ctx); err != nil {
				return "", err
			}
			s.warnSkipped()
			return s.nodesSummary(), s.checkForward(false)
		}})
}

// compare rejects changes to an existing installation without the user's consent.
func (s *site) compare(ctx context.Context) (string, error) {
	if s.cluster.IsDryRun() || s.compared {
		return "", nil
	}
	d := s.dry(s.cluster.DryRun())
	if err := d.install(ctx); err != nil {
		return "", err
	}
	if err := d.awaitNodes(ctx); err != nil {
		return "", err
	}
	planned, err := plan.Of(ctx, nil, d.cluster)
	if err != nil {
		return "", err
	}
	return planned.DecideDifferences(s.options.Update)
}

// install applies the node helper, reserves the cluster's own ranges, and writes the fabric. The helper is applied
// first: its pods start meanwhile, and wait for the fabric.
func (s *site) install(ctx context.Context) error {
	if err := s.applyBase(ctx); err != nil {
		return err
	}
	return s.writeFabric(ctx, func(records.Fabric) (records.Fabric, error) {
		err := s.reserveOwn(ctx)
		return s.desiredFabric(), err
	})
}

// reserveOwn reserves the cluster's own ranges.
func (s *site) reserveOwn(ctx context.Context) error {
	own := s.own
	err := inventory.AddReservations(ctx, s.cluster, s.observed.fabric, func(r *ipam.Registry) (err error) {
		own.External, own.Internal, err = choose.ReserveOwn(r, s.own)
		return err
	})
	if err == nil {
		s.own = own
	}
	return err
}

// makeNamespace creates the namespace, unless the user may only use the existing installation.
func (s *site) makeNamespace(ctx context.Context) error {
	base, err := s.base()
	if err != nil || s.usableDigest != "" || s.installed {
		return err
	}
	return s.apply(ctx, s.observed.fabric != nil, base[0])
}

// applyBase applies the objects of the installation, unless the user may only use the existing one.
func (s *site) applyBase(ctx context.Context) error {
	switch {
	case s.installed:
		return nil
	case s.usableDigest != "":
		return s.keepInstallation()
	}
	base, err := s.base()
	if err != nil {
		return err
	}
	return s.apply(ctx, s.observed.fabric != nil, base...)
}

// awaitNodes waits for the nodes' reports, decides the values that depend on them and completes the fabric.
func (s *site) awaitNodes(ctx context.Context) error {
	if err := s.awaitReports(ctx); err != nil {
		if errors.Is(err, kube.ErrLater) {
			return s.decideWithoutReports(ctx)
		}
		return err
	}
	for _, name := range s.nodes.allReady() {
		if why := s.missingReason(name); why != "" {
			s.unverified = append(s.unverified, UnverifiedNode{name, why})
		}
	}
	err := s.writeFabric(ctx, func(f records.Fabric) (records.Fabric, error) {
		decided, err := desired.WithReports(f, s.readyReports(), s.options.Overlay, s.mayRaiseMTU())
		switch {
		case err != nil:
			return f, fmt.Errorf("cluster %q: %w", s.cluster.Context, err)
		case f.Overlay.Kind != "" && !s.mayChange() && !inventory.Same(f, decided):
			return f, plan.Overtaken(s.cluster, records.FabricName, f, decided)
		}
		return decided, nil
	})
	if err != nil {
		return err
	}
	return s.checkInUse()
}

// decideWithoutReports sets the values that the user has given and that are not decided yet. A dry run cannot wait for
// the reports of nodes.
func (s *site) decideWithoutReports(ctx context.Context) error {
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

// nodesSummary describes the decisions of awaitNodes.
func (s *site) nodesSummary() string {
	return fmt.Sprintf("%s: %s, %s, MTU %d", s.name, plan.Count(len(s.observed.reports), "node"), s.fabric.Overlay.Kind, s.fabric.MTU)
}

// nodeOfMTU returns the first node whose links have the MTU of the cluster; "" if none is known.
func (s *site) nodeOfMTU() string {
	for _, n := range s.observed.reports {
		if n.MTU == s.fabric.MTU {
			return n.Name
		}
	}
	return ""
}

// awaitReports waits until every Ready node has reported and, after an update, until the new helpers run. After a part
// of the time limit, the nodes that have reported are sufficient.
func (s *site) awaitReports(ctx context.Context) error {
	part := mostOfTime
	if s.connecting {
		part = halfOfTime
	}
	defer s.nodes.limitWait(ctx, part)()
	return s.cluster.FailWhen(ctx, templates.NodePods(), s.nodes.recordProblems, func(ctx context.Context) error {
		updated := func(c kube.Change) bool { return c.Kind == "DaemonSet" && c.Action == kube.Changed }
		if !s.cluster.IsDryRun() && slices.ContainsFunc(s.changes, updated) {
			if err := s.awaitHelpers(ctx); err != nil {
				return err
			}
		}
		what := fmt.Sprintf("the reports of the nodes of cluster %q", s.cluster.Context)
		return kube.Wait(ctx, s.cluster, kube.Labelled(inventory.Selector(records.ComponentNode)), what, func(leases []*coordinationv1.Lease) (string, error) {
			if err := s.updateReports(leases); err != nil {
				return "", err
			}
			nodes := s.nodes.required(s.hasReport)
			if len(nodes) == 0 {
				return "no node is Ready", nil
			}
			return inventory.NotYet(slices.DeleteFunc(nodes, s.hasReport)), nil
		})
	})
}

// Parts of the remaining time in which a run waits for all nodes. If some do not report, connect needs the rest to
// verify the others.
const (
	mostOfTime = 0.9
	halfOfTime = 0.5
)

// awaitHelpers waits until the helpers of the newest version are ready. If pods of a DaemonSet cannot start on some
// nodes, its update stops on the others; this is no error, as helpers of two versions work together.
func (s *site) awaitHelpers(ctx context.Context) error {
	desired := func() int {
		if s.nodes.isLate() {
			return 0
		}
		return len(s.nodes.expected())
	}
	err := s.cluster.WaitDaemonSet(ctx, records.NodeName, desired)
	if err == nil && s.nodes.isLate() {
		s.reporter.Warn(fmt.Sprintf("cluster %q: not all node helpers are updated yet", s.cluster.Context),
			fmt.Sprintf("kubectl -n %s --context %s rollout status daemonset/%s", s.cluster.Namespace, kube.ShellWord(s.cluster.Context), records.NodeName))
	}
	return err
}

// readyReports returns the reports of Ready nodes. Reports of other nodes may be outdated.
func (s *site) readyReports() []records.Node {
	ready := s.nodes.allReady()
	return slices.DeleteFunc(slices.Clone(s.observed.reports), func(n records.Node) bool {
		return !slices.Contains(ready, n.Name)
	})
}

// warnSkipped warns of the nodes that are skipped.
func (s *site) warnSkipped() {
	if skipped := s.nodes.notReady(); len(skipped) > 0 {
		s.reporter.Warn(fmt.Sprintf("cluster %q: skipping node %s: not Ready", s.cluster.Context, strings.Join(skipped, ", ")),
			"a node that becomes Ready takes part by itself")
	}
}

// missingReason returns why a node has not reported; "": it has.
func (s *site) missingReason(node string) string {
	why := s.nodes.problemOf(node)
	if why == "" && !s.hasReport(node) {
		why = "its helper has not reported"
	}
	return why
}

// hasReport reports whether a node has reported. A report of an emptied kernel belongs to a previous installation.
func (s *site) hasReport(node string) bool {
	return slices.ContainsFunc(s.observed.reports, func(n records.Node) bool { return n.Name == node && !n.Clean && n.MTU > 0 })
}
