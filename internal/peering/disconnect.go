package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/templates"
)

// Disconnect removes a peering from both clusters, or from the local one alone, and returns when the kernels of
// the nodes and the API servers have nothing of it left. What is not there is no error: the result says what was.
func Disconnect(ctx context.Context, o DisconnectOptions, r steps.Reporter) (Disconnection, error) {
	if err := o.validate(); err != nil {
		return Disconnection{}, err
	}
	ctx, cancel := steps.Within(ctx, o.Timeout)
	defer cancel()
	d := &disconnector{DisconnectOptions: o, local: newLeaving(o.Local, r), remote: newLeaving(o.Remote, r)}
	run := steps.Stages{Reporter: r}
	err := run.Run(ctx, steps.Step{Stage: steps.StageReach, Do: d.reach}, steps.Step{Stage: steps.StageWithdraw, Do: d.each((*leaving).end)}, steps.Step{Stage: steps.StageClean, Do: d.each((*leaving).clean)})
	result := Disconnection{Local: &d.local.Removal, Stages: run.Times, Changed: d.local.altered()}
	if !o.OneSide {
		result.Remote, result.Changed = &d.remote.Removal, result.Changed || d.remote.altered()
	}
	return result, err
}

// PlanDisconnect returns what Disconnect would change, and changes nothing.
func PlanDisconnect(ctx context.Context, o DisconnectOptions, r steps.Reporter) (steps.Plan, error) {
	o.Local.Cluster = o.Local.Cluster.DryRun()
	clusters := []*cluster.Cluster{o.Local.Cluster}
	if o.Remote.Cluster != nil && !o.OneSide {
		o.Remote.Cluster = o.Remote.Cluster.DryRun()
		clusters = append(clusters, o.Remote.Cluster)
	}
	if _, err := Disconnect(ctx, o, steps.Planning(r)); err != nil {
		return steps.Plan{}, err
	}
	return steps.PlanOf(ctx, clusters...)
}

func (o DisconnectOptions) validate() error {
	switch {
	case o.Remote.Cluster == nil && !o.OneSide:
		return hint.With(errors.New("the remote cluster is required"),
			"name it with --remote-context or --remote-kubeconfig, or leave it as it is with --one-side")
	case o.Remote.Cluster == nil && o.Peer == "":
		return hint.With(errors.New("a peer is required"), "liqoctl network status lists the peers")
	case o.Peer == "":
		return nil
	}
	if err := records.ValidateName(o.Peer); err != nil {
		return &steps.InputError{Err: fmt.Errorf("peering: %w", err)}
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
	if d.Remote.Cluster != nil {
		known = append(known, d.remote)
	}
	if err := steps.EachOf(known, func(l *leaving) error { return l.identify(ctx) }); err != nil {
		return "", err
	}
	lines := make([]string, 2)[:len(d.sides())]
	for i, l := range d.sides() {
		all, err := inventory.Traces(ctx, l.Cluster)
		if err != nil {
			return "", err
		}
		if l == d.remote {
			l.Peerings = inventory.TracesOf(all, d.local.id, d.local.name)
		} else if l.Peerings, err = d.findLocal(all); err != nil {
			return "", err
		}
		if len(l.Peerings) == 0 {
			// Nothing to remove is success, unless it is elsewhere.
			if _, err := inventory.CheckElsewhere(ctx, l.Cluster); err != nil {
				return "", err
			}
		}
		lines[i] = l.Context + ": " + cmp.Or(strings.Join(l.Peerings, ", "), "no such peering")
	}
	return strings.Join(lines, "; "), nil
}

// identify reads which cluster this is.
func (l *leaving) identify(ctx context.Context) error {
	if _, err := l.Cluster.Version(ctx); err != nil {
		return err
	}
	// First: what is missing is told all at once.
	if err := steps.CheckPermissions(ctx, l.Cluster, templates.Operate); err != nil {
		return err
	}
	fabric, err := inventory.Fabric(ctx, l.Cluster)
	if err != nil {
		return err
	}
	if l.name, err = inventory.ChooseName(l.Cluster, l.Name, fabric); err != nil {
		return err
	}
	l.id, err = l.Cluster.ID(ctx)
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
			fmt.Errorf("peering %q of cluster %q is not with cluster %q", d.Peer, d.local.Context, d.remote.Context),
			"see liqoctl network status, or name another cluster with --remote-context")
	}
	return []string{d.Peer}, nil
}

// each makes a stage of a step for every peering on every side, all sides at once. A side that fails does not
// stop the other.
func (d *disconnector) each(remove func(*leaving, context.Context, string) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return "", steps.EachOf(d.sides(), func(l *leaving) error {
			var errs []error
			for _, name := range l.Peerings {
				errs = append(errs, remove(l, ctx, name))
			}
			return errors.Join(errs...)
		})
	}
}
