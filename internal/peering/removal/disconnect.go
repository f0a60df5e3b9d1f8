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

// Disconnect removes a peering from both clusters, or only from the local one, and returns when neither the kernels of
// the nodes nor the API servers have state of it. A peering that does not exist is no error; the result contains what
// was removed.
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
	d := &disconnector{DisconnectOptions: o, local: newRemover(o.Local, r), remote: newRemover(o.Remote, r)}
	run := &progress.Stages{Reporter: r}
	err := runSized(ctx, run, o.Timeout, d.removers(), progress.Step{Stage: progress.StageReach, Do: d.reach}, progress.Step{Stage: progress.StageWithdraw, Do: d.each((*remover).stopTraffic)}, progress.Step{Stage: progress.StageClean, Do: d.each((*remover).clean)})
	result := Disconnection{Local: &d.local.removed, Stages: run.Times, Changed: d.local.removed.altered()}
	if !o.OneSide {
		result.Remote, result.Changed = &d.remote.removed, result.Changed || d.remote.removed.altered()
	}
	return result, err
}

// PlanDisconnect returns the changes that Disconnect would make. It changes nothing.
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
			"name it with --remote-context or --remote-kubeconfig, or leave it unchanged with --one-side")
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

// disconnector is a running disconnect.
type disconnector struct {
	DisconnectOptions
	local, remote *remover
}

// removers returns the removers of the clusters from which the peering is removed.
func (d *disconnector) removers() []*remover {
	if d.OneSide {
		return []*remover{d.local}
	}
	return []*remover{d.local, d.remote}
}

// reach identifies the clusters and finds the peerings to remove.
func (d *disconnector) reach(ctx context.Context) (string, error) {
	known := []*remover{d.local}
	if d.Remote != nil {
		known = append(known, d.remote)
	}
	if err := progress.EachOf(known, func(r *remover) error { return r.identify(ctx) }); err != nil {
		return "", err
	}
	lines := make([]string, 2)[:len(d.removers())]
	for i, r := range d.removers() {
		all, err := inventory.Traces(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		if r == d.remote {
			r.removed.Peerings = inventory.TracesOf(all, d.local.id, d.local.name)
		} else if r.removed.Peerings, err = d.findLocal(all); err != nil {
			return "", err
		}
		if len(r.removed.Peerings) == 0 {
			// A missing peering is success, unless liqonet is installed in another namespace.
			if _, err := inventory.CheckElsewhere(ctx, r.cluster); err != nil {
				return "", err
			}
		}
		lines[i] = r.cluster.Context + ": " + cmp.Or(strings.Join(r.removed.Peerings, ", "), "no such peering")
	}
	return strings.Join(lines, "; "), nil
}

// identify reads the cluster's ID and name.
func (r *remover) identify(ctx context.Context) error {
	if err := r.cluster.Reach(ctx); err != nil {
		return err
	}
	// This is first, so that the error lists all missing permissions.
	if err := inventory.CheckPermissions(ctx, r.cluster, templates.Operate); err != nil {
		return err
	}
	fabric, err := inventory.Fabric(ctx, r.cluster)
	if err != nil {
		return err
	}
	if r.name, _, err = inventory.ChooseName(r.cluster, "", fabric, true); err != nil {
		return err
	}
	r.id, err = r.cluster.ID(ctx)
	return err
}

// findLocal returns the names of the local cluster's peerings to remove.
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

// each returns a stage that calls remove for every peering, for all clusters in parallel. An error in one cluster does
// not stop the other.
func (d *disconnector) each(remove func(*remover, context.Context, string) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return "", progress.EachOf(d.removers(), func(r *remover) error {
			var errs []error
			for _, name := range r.removed.Peerings {
				errs = append(errs, remove(r, ctx, name))
			}
			return errors.Join(errs...)
		})
	}
}

// DisconnectOptions are the options of Disconnect.
type DisconnectOptions struct {
	Local *kube.Cluster
	// Remote is the other cluster; nil: the peering is removed only from the local cluster, which OneSide must confirm.
	Remote  *kube.Cluster
	Peer    string // name of the peering in the local cluster; "": the peering with Remote
	OneSide bool
	Timeout time.Duration // total; 0: progress.TimeLimit of the larger cluster
}
