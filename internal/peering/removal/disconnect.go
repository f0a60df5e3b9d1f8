package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Disconnect removes a peering from both clusters, or from the local one alone, and returns when the kernels of
// the nodes and the API servers have nothing of it left. What is not there is no error: the result says what was.
func Disconnect(ctx context.Context, o DisconnectOptions, r progress.Reporter) (Disconnection, error) {
	if err := o.validate(); err != nil {
		return Disconnection{}, err
	}
	clusters := []**kube.Cluster{&o.Local, &o.Remote}
	if o.OneSide {
		clusters = clusters[:1]
	}
	return plan.Locked(ctx, r, func(ctx context.Context) (Disconnection, error) { return disconnect(ctx, o, r) }, clusters...)
}

func disconnect(ctx context.Context, o DisconnectOptions, r progress.Reporter) (Disconnection, error) {
	d := &disconnector{DisconnectOptions: o, local: newLeaving(o.Local, r), remote: newLeaving(o.Remote, r)}
	run := &progress.Stages{Reporter: r}
	err := sized(ctx, run, o.Timeout, d.sides(), progress.Step{Stage: progress.StageReach, Do: d.reach}, progress.Step{Stage: progress.StageWithdraw, Do: d.each((*leaving).end)}, progress.Step{Stage: progress.StageClean, Do: d.each((*leaving).clean)})
	result := Disconnection{Local: &d.local.removed, Stages: run.Times, Changed: d.local.removed.altered()}
	if !o.OneSide {
		result.Remote, result.Changed = &d.remote.removed, result.Changed || d.remote.removed.altered()
	}
	return result, err
}

// PlanDisconnect returns what Disconnect would change, and changes nothing.
func PlanDisconnect(ctx context.Context, o DisconnectOptions, r progress.Reporter) (plan.Plan, error) {
	o.Local = o.Local.DryRun()
	clusters := []*kube.Cluster{o.Local}
	if o.Remote != nil && !o.OneSide {
		o.Remote = o.Remote.DryRun()
		clusters = append(clusters, o.Remote)
	}
	_, err := Disconnect(ctx, o, progress.Planning(r))
	return plan.Of(ctx, err, clusters...)
}

func (o DisconnectOptions) validate() error {
	switch {
	case o.Remote == nil && !o.OneSide:
		return hint.With(errors.New("the remote cluster is required"),
			"name it with --remote-context or --remote-kubeconfig, or leave it as it is with --one-side")
	case o.Remote == nil && o.Peer == "":
		return hint.With(errors.New("a peer is required"), "liqoctl network status lists the peers")
	case o.Peer == "":
		return nil
	}
	if err := records.ValidateName(o.Peer); err != nil {
		return &progress.InputError{Err: err}
	}
	return nil
}

// disconnector is a disconnect on its way.
type disconnector struct {
	DisconnectOptions
	local, remote *leaving
}

// sides are those from which something is to be removed.
func (d *disconnector) sides() []*leaving {
	if d.OneSide {
		return []*leaving{d.local}
	}
	return []*leaving{d.local, d.remote}
}

// reach finds out which clusters these are and what they call each other.
func (d *disconnector) reach(ctx context.Context) (string, error) {
	known := []*leaving{d.local}
	if d.Remote != nil {
		known = append(known, d.remote)
	}
	if err := progress.EachOf(known, func(l *leaving) error { return l.identify(ctx) }); err != nil {
		return "", err
	}
	lines := make([]string, 2)[:len(d.sides())]
	for i, l := range d.sides() {
		all, err := inventory.Traces(ctx, l.cluster)
		if err != nil {
			return "", err
		}
		if l == d.remote {
			l.removed.Peerings = inventory.TracesOf(all, d.local.id, d.local.name)
		} else if l.removed.Peerings, err = d.findLocal(all); err != nil {
			return "", err
		}
		if len(l.removed.Peerings) == 0 {
			// Nothing to remove is success, unless it is elsewhere.
			if _, err := inventory.CheckElsewhere(ctx, l.cluster); err != nil {
				return "", err
			}
		}
		lines[i] = l.cluster.Context + ": " + cmp.Or(strings.Join(l.removed.Peerings, ", "), "no such peering")
	}
	return strings.Join(lines, "; "), nil
}

// identify reads which cluster this is.
func (l *leaving) identify(ctx context.Context) error {
	if err := l.cluster.Reach(ctx); err != nil {
		return err
	}
	// First: what is missing is told all at once.
	if err := inventory.CheckPermissions(ctx, l.cluster, templates.Operate); err != nil {
		return err
	}
	fabric, err := inventory.Fabric(ctx, l.cluster)
	if err != nil {
		return err
	}
	if l.name, err = inventory.ChooseName(l.cluster, "", fabric); err != nil {
		return err
	}
	l.id, err = l.cluster.ID(ctx)
	return err
}

// findLocal chooses what the local cluster has of the peering in question.
func (d *disconnector) findLocal(all []inventory.Trace) ([]string, error) {
	if d.Peer == "" {
		return inventory.TracesOf(all, d.remote.id, d.remote.name), nil
	}
	i := slices.IndexFunc(all, func(t inventory.Trace) bool { return t.Name == d.Peer })
	if i < 0 {
		return nil, nil
	}
	if known := all[i].ClusterID; known != "" && d.remote.id != "" && known != d.remote.id {
		return nil, hint.With(
			fmt.Errorf("peering %q of cluster %q is not with cluster %q", d.Peer, d.local.cluster.Context, d.remote.cluster.Context),
			"see liqoctl network status, or name another cluster with --remote-context")
	}
	return []string{d.Peer}, nil
}

// each makes a stage of a step for every peering on every side, all sides at once. A side that fails does not
// stop the other.
func (d *disconnector) each(remove func(*leaving, context.Context, string) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return "", progress.EachOf(d.sides(), func(l *leaving) error {
			var errs []error
			for _, name := range l.removed.Peerings {
				errs = append(errs, remove(l, ctx, name))
			}
			return errors.Join(errs...)
		})
	}
}

// DisconnectOptions are the options of Disconnect.
type DisconnectOptions struct {
	Local *kube.Cluster
	// Remote is the other cluster; nil: only the local side is removed: OneSide must say that
	// this is wanted.
	Remote  *kube.Cluster
	Peer    string // the peering's name in the local cluster; "": the one with Remote
	OneSide bool
	Timeout time.Duration // for all of it; 0: the default, which grows with the larger cluster
}
