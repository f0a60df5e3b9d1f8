package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/templates"
)

// Reset removes liqonet from a cluster: the node helpers, once they have emptied their kernels, and every object. It
// ends by reading the kernels of all nodes; what it finds there without an installation, it removes. Peerings that
// exist are an error, unless Force removes them too, on this side only.
func Reset(ctx context.Context, o ResetOptions, r progress.Reporter) (ResetResult, error) {
	if o.VerifyOnly {
		return verifyOnly(ctx, o, r)
	}
	unlocked := o.Cluster
	return plan.Locked(ctx, r, func(ctx context.Context) (ResetResult, error) {
		v := &verifier{ResetOptions: o, run: inventory.NewRun()}
		v.Cluster, v.found.Objects = unlocked, []string{}
		return reset(ctx, o, v, r)
	}, &o.Cluster)
}

func reset(ctx context.Context, o ResetOptions, v *verifier, r progress.Reporter) (ResetResult, error) {
	l := newLeaving(o.Cluster, r)
	l.force = o.Force
	run := &progress.Stages{Reporter: r}
	var unverified error
	reach := func(ctx context.Context) (string, error) {
		detail, err := l.reach(ctx)
		if err == nil && !l.shared && !o.Cluster.IsDryRun() {
			unverified = v.prepare(ctx)
		}
		return detail, err
	}
	rest := []progress.Step{
		{Stage: progress.StageWithdraw, Do: l.disconnect},
		{Stage: progress.StageUninstall, Do: func(ctx context.Context) (string, error) { return "", l.stop(ctx) }},
	}
	if !o.Cluster.IsDryRun() {
		// In the namespace of the installation, which may have Secrets for the image.
		rest = append(rest, progress.Step{Stage: progress.StageProof, Do: func(ctx context.Context) (detail string, _ error) {
			if !l.shared && unverified == nil {
				detail, unverified = v.within(ctx)
			}
			return cmp.Or(detail, "skipped"), nil
		}})
	}
	rest = append(rest, progress.Step{Stage: progress.StageClean, Do: func(ctx context.Context) (string, error) {
		err := l.finish(ctx)
		return fmt.Sprintf("%d objects", len(l.removed.Objects)), err
	}})
	err := sized(ctx, run, o.Timeout, []*leaving{l}, progress.Step{Stage: progress.StageReach, Do: reach}, rest...)
	result := ResetResult{Removed: l.removed, Stages: run.Times, Changed: l.removed.altered()}
	if !l.shared {
		result.Remains = &v.found
	}
	if err == nil && unverified != nil {
		err = hint.With(fmt.Errorf("liqonet is removed, but the nodes of cluster %q are not verified: %w", o.Cluster.Context, unverified),
			cmp.Or(hint.Of(unverified), "liqoctl network reset --verify-only"))
	}
	return result, err
}

// PlanReset returns what Reset would change, and changes nothing.
func PlanReset(ctx context.Context, o ResetOptions, r progress.Reporter) (plan.Plan, error) {
	o.Cluster = o.Cluster.DryRun()
	_, err := Reset(ctx, o, progress.Planning(r))
	return plan.Of(ctx, err, o.Cluster)
}

// reach finds out what is there, and refuses what stands.
func (l *leaving) reach(ctx context.Context) (string, error) {
	if err := l.cluster.Reach(ctx); err != nil {
		return "", err
	}
	if err := inventory.CheckPermissions(ctx, l.cluster, templates.Administer); err != nil {
		return "", err
	}
	// A second installation can be removed, and the first one stays.
	others, err := inventory.CheckElsewhere(ctx, l.cluster)
	if l.shared = len(others) > 0; l.shared {
		l.reporter.Note(fmt.Sprintf("liqonet is also installed in namespace %s of cluster %q: its nodes are not verified", others[0], l.cluster.Context))
	}
	if elsewhere, ok := errors.AsType[*inventory.ElsewhereError](err); ok {
		l.shared = true
		l.reporter.Note(elsewhere.Error() + ": only its remains are removed")
	} else if err != nil {
		return "", err
	}
	all, err := inventory.Traces(ctx, l.cluster)
	damage, damaged := errors.AsType[*inventory.UnreadableError](err)
	if l.damaged = damaged && l.force; l.damaged {
		l.reporter.Warn(fmt.Sprintf("cluster %q: %v: removed with all else", l.cluster.Context, damage), "")
	} else if err != nil {
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
	Cluster    *kube.Cluster
	Force      bool // peerings that exist are removed on this side; nodes that do not confirm are emptied
	VerifyOnly bool // removes nothing
	// Image and Pods are those of the pods that verify, where no installation has its own.
	Image   string
	NoImage error // why Image is empty
	Pods    templates.Pods
	Timeout time.Duration // for all of it; 0: the default, which grows with the cluster
}
