package removal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/templates"
)

// Reset removes liqonet from a cluster: the node helpers, once they have emptied their kernels, and every object.
// Peerings that stand are an error, unless Force removes them too, on this side only.
func Reset(ctx context.Context, o ResetOptions, r steps.Reporter) (ResetResult, error) {
	return steps.Locked(ctx, r, func(ctx context.Context) (ResetResult, error) { return reset(ctx, o, r) }, &o.Cluster)
}

func reset(ctx context.Context, o ResetOptions, r steps.Reporter) (ResetResult, error) {
	l := newLeaving(o.Cluster, r)
	l.force = o.Force
	run := &steps.Stages{Reporter: r}
	err := sized(ctx, run, o.Timeout, []*leaving{l}, steps.Step{Stage: steps.StageReach, Do: l.reach}, steps.Step{Stage: steps.StageWithdraw, Do: l.disconnect}, steps.Step{Stage: steps.StageUninstall, Do: func(ctx context.Context) (string, error) {
		err := l.uninstall(ctx)
		return fmt.Sprintf("%d objects", len(l.removed.Objects)), err
	}})
	return ResetResult{Removed: l.removed, Stages: run.Times, Changed: l.removed.altered()}, err
}

// PlanReset returns what Reset would change, and changes nothing.
func PlanReset(ctx context.Context, o ResetOptions, r steps.Reporter) (steps.Plan, error) {
	o.Cluster = o.Cluster.DryRun()
	_, err := Reset(ctx, o, steps.Planning(r))
	return steps.PlanOf(ctx, err, o.Cluster)
}

// reach finds out what is there, and refuses what stands.
func (l *leaving) reach(ctx context.Context) (string, error) {
	if err := l.cluster.Reach(ctx); err != nil {
		return "", err
	}
	if err := steps.CheckPermissions(ctx, l.cluster, templates.Administer); err != nil {
		return "", err
	}
	// A second installation can be removed, and the first one stays.
	_, err := inventory.CheckElsewhere(ctx, l.cluster)
	if elsewhere, ok := errors.AsType[*inventory.ElsewhereError](err); ok {
		l.reporter.Note(elsewhere.Error() + ": only its remains are removed")
	} else if err != nil {
		return "", err
	}
	all, err := inventory.Traces(ctx, l.cluster)
	if err != nil {
		return "", err
	}
	for _, t := range all {
		l.removed.Peerings = append(l.removed.Peerings, t.Name)
	}
	if len(l.removed.Peerings) > 0 && !l.force {
		return "", hint.With(
			fmt.Errorf("cluster %q has peerings: %s", l.cluster.Context, strings.Join(l.removed.Peerings, ", ")),
			"liqoctl network disconnect, or --force to remove them on this side only")
	}
	return l.cluster.Context, nil
}

// disconnect removes the peerings.
func (l *leaving) disconnect(ctx context.Context) (string, error) {
	for _, name := range l.removed.Peerings {
		if err := l.peering(ctx, name); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d peerings", len(l.removed.Peerings)), nil
}

// ResetOptions are the options of Reset.
type ResetOptions struct {
	Cluster *cluster.Cluster
	Force   bool          // peerings that stand are removed on this side
	Timeout time.Duration // for all of it; 0: the default, which grows with the cluster
}
