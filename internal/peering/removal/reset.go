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

// Reset removes liqonet from a cluster: first the node helpers, after they have emptied their kernels, then every
// object. It then reads the kernels of all nodes, and removes state that it finds there without an installation.
// Existing peerings are an error, unless Force removes them too, in this cluster only.
func Reset(ctx context.Context, o ResetOptions, r progress.Reporter) (ResetResult, error) {
	if o.VerifyOnly {
		return verifyOnly(ctx, o, r)
	}
	unlocked := o.Cluster
	return plan.Locked(ctx, r, func(ctx context.Context) (ResetResult, error) {
		v := &verifier{ResetOptions: o, run: inventory.NewRun()}
		v.Cluster, v.remains.Objects = unlocked, []string{}
		return reset(ctx, o, v, r)
	}, &o.Cluster)
}

func reset(ctx context.Context, o ResetOptions, v *verifier, reporter progress.Reporter) (ResetResult, error) {
	r := newRemover(o.Cluster, reporter)
	r.force = o.Force
	run := &progress.Stages{Reporter: reporter}
	var unverified error
	reach := func(ctx context.Context) (string, error) {
		detail, err := r.reach(ctx)
		if err == nil && !r.shared && !o.Cluster.IsDryRun() {
			unverified = v.prepare(ctx)
		}
		return detail, err
	}
	rest := []progress.Step{
		{Stage: progress.StageWithdraw, Do: r.disconnect},
		{Stage: progress.StageUninstall, Do: func(ctx context.Context) (string, error) { return "", r.stopHelpers(ctx) }},
	}
	if !o.Cluster.IsDryRun() {
		// The pods run in the namespace of the installation, which may have Secrets for the image.
		rest = append(rest, progress.Step{Stage: progress.StageProof, Do: func(ctx context.Context) (detail string, _ error) {
			if !r.shared && unverified == nil {
				detail, unverified = v.verifyWithin(ctx)
			}
			return cmp.Or(detail, "skipped"), nil
		}})
	}
	rest = append(rest, progress.Step{Stage: progress.StageClean, Do: func(ctx context.Context) (string, error) {
		err := r.deleteObjects(ctx)
		return plan.Count(len(r.removed.Objects), "object"), err
	}})
	err := runSized(ctx, run, o.Timeout, []*remover{r}, progress.Step{Stage: progress.StageReach, Do: reach}, rest...)
	result := ResetResult{Removed: r.removed, Stages: run.Times, Changed: r.removed.altered()}
	if !r.shared {
		result.Remains = &v.remains
	}
	if err == nil && unverified != nil {
		err = hint.With(fmt.Errorf("liqonet is removed, but the nodes of cluster %q are not verified: %w", o.Cluster.Context, unverified),
			cmp.Or(hint.Of(unverified), "liqoctl network reset --verify-only"))
	}
	return result, err
}

// PlanReset returns the changes that Reset would make. It changes nothing.
func PlanReset(ctx context.Context, o ResetOptions, r progress.Reporter) (plan.Plan, error) {
	o.Cluster = o.Cluster.DryRun()
	_, err := Reset(ctx, o, progress.Planning(r))
	return plan.Of(ctx, err, o.Cluster)
}

// reach finds what is installed, and rejects existing peerings without force.
func (r *remover) reach(ctx context.Context) (string, error) {
	if err := r.cluster.Reach(ctx); err != nil {
		return "", err
	}
	if err := inventory.CheckPermissions(ctx, r.cluster, templates.Administer); err != nil {
		return "", err
	}
	// A second installation can be removed; the first one is kept.
	others, err := inventory.CheckElsewhere(ctx, r.cluster)
	if r.shared = len(others) > 0; r.shared {
		r.reporter.Note(fmt.Sprintf("liqonet is also installed in namespace %s of cluster %q: its nodes are not verified", others[0], r.cluster.Context))
	}
	if elsewhere, ok := errors.AsType[*inventory.ElsewhereError](err); ok {
		r.shared = true
		r.reporter.Note(elsewhere.Error() + ": only its remains are removed")
	} else if err != nil {
		return "", err
	}
	all, err := inventory.Traces(ctx, r.cluster)
	damage, damaged := errors.AsType[*inventory.UnreadableError](err)
	if r.damaged = damaged && r.force; r.damaged {
		r.reporter.Warn(fmt.Sprintf("cluster %q: %v: removed with all else", r.cluster.Context, damage), "")
	} else if err != nil {
		return "", err
	}
	for _, t := range all {
		r.removed.Peerings = append(r.removed.Peerings, t.Name)
	}
	if len(r.removed.Peerings) > 0 && !r.force {
		return "", hint.With(
			fmt.Errorf("cluster %q has peerings: %s", r.cluster.Context, strings.Join(r.removed.Peerings, ", ")),
			"liqoctl network disconnect, or --force to remove them on this side only")
	}
	return r.cluster.Context, nil
}

// disconnect removes the peerings.
func (r *remover) disconnect(ctx context.Context) (string, error) {
	for _, name := range r.removed.Peerings {
		if err := r.removePeering(ctx, name); err != nil {
			return "", err
		}
	}
	return plan.Count(len(r.removed.Peerings), "peering"), nil
}

// ResetOptions are the options of Reset.
type ResetOptions struct {
	Cluster    *kube.Cluster
	Force      bool // remove existing peerings from this cluster; continue if nodes do not confirm
	VerifyOnly bool // remove nothing
	// Image and Pods are those of the verifying pods, if no installation exists.
	Image   string
	NoImage error // why Image is empty
	Pods    templates.Pods
	Timeout time.Duration // total; 0: progress.TimeLimit of the cluster
}
