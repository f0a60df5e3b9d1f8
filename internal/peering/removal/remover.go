// Package removal removes a peering (Disconnect), or an installation (Reset), from a cluster, and what remains in
// kernels without an installation. The guard against clear text is removed last: a node first removes the routes of a
// peering, then reports that.
package removal

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// remover removes peerings, or the installation, from a cluster.
type remover struct {
	cluster  *kube.Cluster
	removed  Removed // so far; but Peerings lists those to remove
	reporter progress.Reporter
	force    bool   // continue if nodes do not confirm
	damaged  bool   // the reservations do not decode, and are deleted because of force
	shared   bool   // another namespace has an installation, whose helpers run on the nodes
	id       string // of the cluster
	name     string // of the cluster at its peers; derived from the context if not installed
}

// newRemover returns the remover for a cluster; nil: no cluster, and nothing is removed.
func newRemover(c *kube.Cluster, reporter progress.Reporter) *remover {
	r := &remover{cluster: c, reporter: reporter}
	if c != nil {
		r.removed.Context = c.Context
	}
	return r
}

// runSized runs the stages of a removal, which waits for each node, and for the termination of a pod on each. After the
// first stage, the time limit is that of the larger cluster.
func runSized(ctx context.Context, run *progress.Stages, timeout time.Duration, removers []*remover, reach progress.Step, rest ...progress.Step) error {
	start, nodes := time.Now(), 0
	early, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, 0))
	defer cancel()
	if err := run.Run(early, reach); err != nil {
		return err
	}
	for _, r := range removers {
		live, err := inventory.ReadyNodes(early, r.cluster)
		if err != nil {
			return err
		}
		nodes = max(nodes, len(live))
	}
	late, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, nodes))
	defer cancel()
	return run.Run(late, rest...)
}

// Peering removes a peering from a cluster.
func Peering(ctx context.Context, c *kube.Cluster, name string, r progress.Reporter) error {
	return newRemover(c, r).removePeering(ctx, name)
}

// Installation removes an installation without peerings from a cluster.
func Installation(ctx context.Context, c *kube.Cluster, r progress.Reporter) error {
	rm := newRemover(c, r)
	if err := rm.stopHelpers(ctx); err != nil {
		return err
	}
	return rm.deleteObjects(ctx)
}

// removePeering stops the traffic of a peering and removes its objects and ranges.
func (r *remover) removePeering(ctx context.Context, name string) error {
	if err := r.stopTraffic(ctx, name); err != nil {
		return err
	}
	return r.clean(ctx, name)
}

// stopTraffic stops the traffic of a peering: the nodes remove its routes and report that, and its gateways are
// deleted.
func (r *remover) stopTraffic(ctx context.Context, peering string) error {
	if err := r.delete(ctx, &corev1.ConfigMap{ObjectMeta: inventory.Meta(r.cluster.Namespace, records.PeeringName(peering))}); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		gateways, err := kube.All[*appsv1.Deployment](inner, r.cluster, inventory.PeeringSelector(peering))
		if err != nil {
			return err
		}
		// The first Deployment is deleted even if its label was removed.
		first := records.GatewayID{Peering: peering, Number: 1}.Name()
		objects := []kube.Object{&appsv1.Deployment{ObjectMeta: inventory.Meta(r.cluster.Namespace, first)}}
		for _, g := range gateways {
			if g.Name != first {
				objects = append(objects, g)
			}
		}
		return r.delete(inner, objects...)
	})
	group.Go(func() error {
		what := fmt.Sprintf("the nodes of cluster %q to give up peering %q", r.cluster.Context, peering)
		return r.awaitReports(inner, what, func(n records.Node) bool { return !slices.Contains(n.Peerings, peering) })
	})
	return group.Wait()
}

// clean removes what remains of a peering without traffic. Its ranges are released last: they must not be reserved
// again while a node may have routes for them. A node guards the ranges that are reserved for a peering, and stops when
// they are released.
func (r *remover) clean(ctx context.Context, peering string) error {
	objects, err := r.cluster.List(ctx, inventory.PeeringSelector(peering))
	if err != nil {
		return err
	}
	if err := r.delete(ctx, objects...); err != nil || r.damaged {
		return err
	}
	var released []ipam.Reservation
	err = inventory.UpdateReservations(ctx, r.cluster, func(r *ipam.Registry) (err error) {
		released, err = r.Release(ipam.Peering(peering))
		return err
	})
	if err != nil {
		return err
	}
	for _, held := range released {
		r.removed.Released = append(r.removed.Released, ReleasedRange{Range: held.Range, Use: held.Use()})
	}
	what := fmt.Sprintf("the nodes of cluster %q to guard nothing of peering %q any more", r.cluster.Context, peering)
	return r.awaitReports(ctx, what, func(n records.Node) bool { return !slices.Contains(n.Guarded, peering) })
}

// stopHelpers stops the helpers. It deletes the fabric first, which has the node helpers empty their kernels; they must
// do so before they are deleted. If the reservations are damaged, the helpers keep the guard of those that they have
// read.
func (r *remover) stopHelpers(ctx context.Context) error {
	first := []kube.Object{&corev1.ConfigMap{ObjectMeta: inventory.Meta(r.cluster.Namespace, records.FabricName)}}
	if r.damaged {
		first = append(first, &corev1.ConfigMap{ObjectMeta: inventory.Meta(r.cluster.Namespace, records.IPAMName)})
	}
	if err := r.delete(ctx, first...); err != nil {
		return err
	}
	what := fmt.Sprintf("the nodes of cluster %q to empty their kernels", r.cluster.Context)
	if err := r.awaitReports(ctx, what, func(n records.Node) bool { return n.Clean }); err != nil {
		return err
	}
	// Workloads are deleted first: until its pod is gone, a helper that has just started may create its Lease.
	objects, err := inventory.Installed(ctx, r.cluster)
	if err != nil {
		return err
	}
	return r.delete(ctx, slices.DeleteFunc(objects, func(o kube.Object) bool { return !isWorkload(o) })...)
}

// deleteObjects deletes the objects of an installation whose helpers have stopped.
func (r *remover) deleteObjects(ctx context.Context) error {
	objects, err := inventory.Installed(ctx, r.cluster)
	if err != nil {
		return err
	}
	lock := &coordinationv1.Lease{ObjectMeta: inventory.Meta(r.cluster.Namespace, records.LockName)}
	last := []kube.Object{lock, &corev1.Namespace{ObjectMeta: inventory.Meta("", r.cluster.Namespace)}}
	same := func(o kube.Object) bool {
		return slices.ContainsFunc(last, func(kept kube.Object) bool {
			return reflect.TypeOf(kept) == reflect.TypeOf(o) && kept.GetName() == o.GetName()
		})
	}
	// Leases before the policies: what a policy saw last, the API server compares with in the next installation
	// (kubernetes#130887).
	var leases, others []kube.Object
	for _, o := range slices.DeleteFunc(objects, same) {
		if _, is := o.(*coordinationv1.Lease); is {
			leases = append(leases, o)
		} else {
			others = append(others, o)
		}
	}
	for _, these := range [][]kube.Object{leases, others} {
		if err := r.delete(ctx, these...); err != nil {
			return err
		}
	}
	if existing, err := r.cluster.Present(ctx, last...); err != nil || len(existing) == 0 {
		return err
	}
	if err := r.cluster.LetGo(ctx); err != nil {
		return err
	}
	// The lock exists until all else is deleted, and is deleted with the Namespace: a run that found no lock before
	// that would take it, and then lose it. With the Namespace, permissions that were granted in it are deleted as
	// well.
	before := len(r.removed.Objects)
	if err := r.delete(ctx, last[1]); err != nil || len(r.removed.Objects) > before {
		return err
	}
	return r.delete(ctx, lock)
}

// isWorkload reports whether an object has pods.
func isWorkload(o kube.Object) bool {
	switch o.(type) {
	case *appsv1.DaemonSet, *appsv1.Deployment:
		return true
	}
	return false
}

func (r *remover) delete(ctx context.Context, objects ...kube.Object) error {
	changes, err := r.cluster.Delete(ctx, objects...)
	r.removed.Objects = append(r.removed.Objects, progress.Altering(changes)...)
	if err != nil || !slices.ContainsFunc(objects, isWorkload) {
		return err
	}
	// Without permission to read pods and nodes there is no warning.
	if stranded, _ := r.cluster.Stranded(ctx, records.LabelComponent); len(stranded) > 0 {
		r.reporter.Warn(fmt.Sprintf("cluster %q: pods whose nodes are lost stay until these are back: %s", r.cluster.Context, strings.Join(stranded, ", ")),
			"delete the Node object of a node that does not come back; a Namespace that is being deleted goes then, too")
	}
	return nil
}

// awaitReports waits until done is true for the reports of all live nodes. It skips nodes that are not Ready, as they
// cannot report: the helper empties the kernel when the node is back, or the kernel is gone with the node.
func (r *remover) awaitReports(ctx context.Context, what string, done func(records.Node) bool) error {
	if r.cluster.IsDryRun() {
		return nil
	}
	live, err := inventory.ReadyNodes(ctx, r.cluster)
	if err != nil {
		return err
	}
	leases, err := inventory.Leases(ctx, r.cluster)
	if err != nil {
		return err
	}
	missing, notReady, err := unconfirmed(leases, live, done)
	if len(notReady) > 0 {
		r.reporter.Warn(fmt.Sprintf("cluster %q: skipping node %s: not Ready", r.cluster.Context, strings.Join(notReady, ", ")),
			"a node that comes back empties its kernel only while its helper runs there; one that restarts has nothing left")
	}
	if len(missing) == 0 || err != nil {
		return err
	}
	if err = r.checkHelper(ctx, inventory.NotYet(missing)); err == nil {
		err = r.cluster.FailFast(ctx, templates.NodePods(), func(ctx context.Context) error {
			return kube.Wait(ctx, r.cluster, kube.Labelled(inventory.Selector(records.ComponentNode)), what,
				func(leases []*coordinationv1.Lease) (string, error) {
					missing, _, err := unconfirmed(leases, live, done)
					return inventory.NotYet(missing), err
				})
		})
	}
	if err != nil && r.force && ctx.Err() == nil {
		r.reporter.Warn(err.Error(), "restart these nodes to clear their kernels")
		return nil
	}
	return err
}

// unconfirmed returns the names, sorted, of the nodes without a report for which done is true: missing are live,
// notReady cannot report. Every node with a number must report: a helper that has just started may have
// changed the kernel already.
func unconfirmed(leases []*coordinationv1.Lease, live map[string]bool, done func(records.Node) bool) (missing, notReady []string, err error) {
	reports, err := inventory.Reports(leases)
	for _, lease := range leases {
		name := lease.Spec.HolderIdentity
		switch {
		case name == nil, slices.ContainsFunc(reports, func(n records.Node) bool { return n.Name == *name && done(n) }):
		case live[*name]:
			missing = append(missing, *name)
		default:
			notReady = append(notReady, *name)
		}
	}
	slices.Sort(missing)
	slices.Sort(notReady)
	return slices.Compact(missing), slices.Compact(notReady), err
}

// checkHelper returns an error if no helper exists that could report for the missing nodes.
func (r *remover) checkHelper(ctx context.Context, missing string) error {
	set, err := kube.Find[*appsv1.DaemonSet](ctx, r.cluster, records.NodeName)
	if set != nil || err != nil {
		return err
	}
	return hint.With(
		fmt.Errorf("cluster %q: liqonet state remains in the kernels of nodes without a helper to remove it: %s", r.cluster.Context, missing),
		"bring the helpers back with liqoctl network init, then run this again; liqoctl network reset --force does without them")
}
