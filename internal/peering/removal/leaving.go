// Package removal removes what liqonet has in a cluster: a peering (Disconnect), or an installation (Reset) and what is
// left in kernels without one. The guard against clear text falls last: a node first gives up the routes of a peering,
// then says so in its report.
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

// leaving is a cluster from which peerings, and the installation if asked, are removed.
type leaving struct {
	cluster  *kube.Cluster
	removed  Removed // so far; its Peerings are those to remove
	reporter progress.Reporter
	force    bool   // go on where nodes cannot confirm
	damaged  bool   // the reservations cannot be read, and go with force
	shared   bool   // the nodes have helpers of an installation in another namespace
	id       string // of the cluster
	name     string // by which peers know the cluster, or would if it had been installed
}

// newLeaving is for the cluster; nil: there is none, and nothing is removed.
func newLeaving(c *kube.Cluster, r progress.Reporter) *leaving {
	l := &leaving{cluster: c, reporter: r}
	if c != nil {
		l.removed.Context = c.Context
	}
	return l
}

// sized runs the stages of a removal, which waits for each node, and for the end of a pod on each. After the first
// stage, the time limit is that of the larger cluster.
func sized(ctx context.Context, run *progress.Stages, timeout time.Duration, sides []*leaving, reach progress.Step, rest ...progress.Step) error {
	start, nodes := time.Now(), 0
	early, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, 0))
	defer cancel()
	if err := run.Run(early, reach); err != nil {
		return err
	}
	for _, l := range sides {
		live, err := inventory.ReadyNodes(early, l.cluster)
		if err != nil {
			return err
		}
		nodes = max(nodes, len(live))
	}
	late, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(timeout, nodes))
	defer cancel()
	return run.Run(late, rest...)
}

// Peering removes what a cluster has of a peering.
func Peering(ctx context.Context, c *kube.Cluster, name string, r progress.Reporter) error {
	return newLeaving(c, r).peering(ctx, name)
}

// Installation removes what an installation without peerings has in a cluster.
func Installation(ctx context.Context, c *kube.Cluster, r progress.Reporter) error {
	return newLeaving(c, r).uninstall(ctx)
}

// peering ends the traffic of a peering and removes what is left of it.
func (l *leaving) peering(ctx context.Context, name string) error {
	if err := l.end(ctx, name); err != nil {
		return err
	}
	return l.clean(ctx, name)
}

// end ends the traffic of a peering: the nodes give up its routes and say so, its gateways go.
func (l *leaving) end(ctx context.Context, peering string) error {
	if err := l.delete(ctx, &corev1.ConfigMap{ObjectMeta: inventory.Meta(l.cluster.Namespace, records.PeeringName(peering))}); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		gateways, err := kube.All[*appsv1.Deployment](inner, l.cluster, inventory.PeeringSelector(peering))
		if err != nil {
			return err
		}
		// Whoever took the label from the first one does not keep it running.
		first := records.GatewayID{Peering: peering, Number: 1}.Name()
		objects := []kube.Object{&appsv1.Deployment{ObjectMeta: inventory.Meta(l.cluster.Namespace, first)}}
		for _, g := range gateways {
			if g.Name != first {
				objects = append(objects, g)
			}
		}
		return l.delete(inner, objects...)
	})
	group.Go(func() error {
		what := fmt.Sprintf("the nodes of cluster %q to give up peering %q", l.cluster.Context, peering)
		return l.await(inner, what, func(n records.Node) bool { return !slices.Contains(n.Peerings, peering) })
	})
	return group.Wait()
}

// clean removes what is left of a peering whose traffic has ended, its ranges last: nobody may be given them
// while a node could still have routes for them. Nodes hold back what is reserved for a peering, and so give that up
// then.
func (l *leaving) clean(ctx context.Context, peering string) error {
	objects, err := l.cluster.List(ctx, inventory.PeeringSelector(peering))
	if err != nil {
		return err
	}
	if err := l.delete(ctx, objects...); err != nil || l.damaged {
		return err
	}
	var released []ipam.Reservation
	err = inventory.UpdateReservations(ctx, l.cluster, func(r *ipam.Registry) (err error) {
		released, err = r.Release(ipam.Peering(peering))
		return err
	})
	if err != nil {
		return err
	}
	for _, held := range released {
		l.removed.Released = append(l.removed.Released, ReleasedRange{Range: held.Range, Use: held.Use()})
	}
	what := fmt.Sprintf("the nodes of cluster %q to guard nothing of peering %q any more", l.cluster.Context, peering)
	return l.await(ctx, what, func(n records.Node) bool { return !slices.Contains(n.Guarded, peering) })
}

// uninstall removes the installation.
func (l *leaving) uninstall(ctx context.Context) error {
	if err := l.stop(ctx); err != nil {
		return err
	}
	return l.finish(ctx)
}

// stop ends the helpers. The fabric goes first: that is what tells the node helpers to empty their kernels, and they
// must have done so before they are gone themselves. While reservations are damaged they keep the guard of those that
// they have read.
func (l *leaving) stop(ctx context.Context) error {
	first := []kube.Object{&corev1.ConfigMap{ObjectMeta: inventory.Meta(l.cluster.Namespace, records.FabricName)}}
	if l.damaged {
		first = append(first, &corev1.ConfigMap{ObjectMeta: inventory.Meta(l.cluster.Namespace, records.IPAMName)})
	}
	if err := l.delete(ctx, first...); err != nil {
		return err
	}
	what := fmt.Sprintf("the nodes of cluster %q to empty their kernels", l.cluster.Context)
	if err := l.await(ctx, what, func(n records.Node) bool { return n.Clean }); err != nil {
		return err
	}
	// Workloads go first: until its pod is gone, a helper that has only begun may make its Lease.
	objects, err := inventory.Installed(ctx, l.cluster)
	if err != nil {
		return err
	}
	return l.delete(ctx, slices.DeleteFunc(objects, func(o kube.Object) bool { return !isWorkload(o) })...)
}

// finish removes the objects of an installation whose helpers have ended.
func (l *leaving) finish(ctx context.Context) error {
	objects, err := inventory.Installed(ctx, l.cluster)
	if err != nil {
		return err
	}
	lock := &coordinationv1.Lease{ObjectMeta: inventory.Meta(l.cluster.Namespace, records.LockName)}
	last := []kube.Object{lock, &corev1.Namespace{ObjectMeta: inventory.Meta("", l.cluster.Namespace)}}
	same := func(o kube.Object) bool {
		return slices.ContainsFunc(last, func(l kube.Object) bool {
			return reflect.TypeOf(l) == reflect.TypeOf(o) && l.GetName() == o.GetName()
		})
	}
	if err := l.delete(ctx, slices.DeleteFunc(objects, same)...); err != nil {
		return err
	}
	if there, err := l.cluster.Present(ctx, last...); err != nil || len(there) == 0 {
		return err
	}
	if err := l.cluster.LetGo(ctx); err != nil {
		return err
	}
	// The lock is there until all else is gone. It goes with the Namespace: a run that found none before would take it,
	// and lose it then. With the Namespace go the rights of those who were given them there, too.
	before := len(l.removed.Objects)
	if err := l.delete(ctx, last[1]); err != nil || len(l.removed.Objects) > before {
		return err
	}
	return l.delete(ctx, lock)
}

// isWorkload reports whether an object has pods.
func isWorkload(o kube.Object) bool {
	switch o.(type) {
	case *appsv1.DaemonSet, *appsv1.Deployment:
		return true
	}
	return false
}

func (l *leaving) delete(ctx context.Context, objects ...kube.Object) error {
	changes, err := l.cluster.Delete(ctx, objects...)
	l.removed.Objects = append(l.removed.Objects, progress.Altering(changes)...)
	if err != nil || !slices.ContainsFunc(objects, isWorkload) {
		return err
	}
	// Without the right to read pods and nodes there is no warning.
	if stranded, _ := l.cluster.Stranded(ctx, records.LabelComponent); len(stranded) > 0 {
		l.reporter.Warn(fmt.Sprintf("cluster %q: pods whose nodes are lost stay until these are back: %s", l.cluster.Context, strings.Join(stranded, ", ")),
			"delete the Node object of a node that does not come back; a Namespace that is being deleted goes then, too")
	}
	return nil
}

// await waits until every live node reports what done asks for. A node that is not Ready cannot, and must not
// hold up the others: its kernel follows when it is back, or is gone with it.
func (l *leaving) await(ctx context.Context, what string, done func(records.Node) bool) error {
	if l.cluster.IsDryRun() {
		return nil
	}
	live, err := inventory.ReadyNodes(ctx, l.cluster)
	if err != nil {
		return err
	}
	leases, err := inventory.Leases(ctx, l.cluster)
	if err != nil {
		return err
	}
	missing, silent, err := unconfirmed(leases, live, done)
	if len(silent) > 0 {
		l.reporter.Warn(fmt.Sprintf("cluster %q: skipping node %s: not Ready", l.cluster.Context, strings.Join(silent, ", ")),
			"a node that comes back empties its kernel only while its helper runs there; one that restarts has nothing left")
	}
	if len(missing) == 0 || err != nil {
		return err
	}
	if err = l.helperRuns(ctx, inventory.NotYet(missing)); err == nil {
		err = l.cluster.FailFast(ctx, templates.NodePods(), func(ctx context.Context) error {
			return kube.Wait(ctx, l.cluster, kube.Labelled(inventory.Selector(records.ComponentNode)), what,
				func(leases []*coordinationv1.Lease) (string, error) {
					missing, _, err := unconfirmed(leases, live, done)
					return inventory.NotYet(missing), err
				})
		})
	}
	if err != nil && l.force && ctx.Err() == nil {
		l.reporter.Warn(err.Error(), "restart these nodes to clear their kernels")
		return nil
	}
	return err
}

// unconfirmed names the nodes of which a report is missing that says done, sorted, and apart from them those that
// cannot report. Every node that holds an internal address has to: one whose helper has only begun may have changed its
// kernel.
func unconfirmed(leases []*coordinationv1.Lease, live map[string]bool, done func(records.Node) bool) (missing, silent []string, err error) {
	reports, err := inventory.Reports(leases)
	for _, lease := range leases {
		name := lease.Spec.HolderIdentity
		switch {
		case name == nil, slices.ContainsFunc(reports, func(n records.Node) bool { return n.Name == *name && done(n) }):
		case live[*name]:
			missing = append(missing, *name)
		default:
			silent = append(silent, *name)
		}
	}
	slices.Sort(missing)
	slices.Sort(silent)
	return slices.Compact(missing), slices.Compact(silent), err
}

// helperRuns refuses to wait for nodes that have no helper any more.
func (l *leaving) helperRuns(ctx context.Context, missing string) error {
	set, err := kube.Find[*appsv1.DaemonSet](ctx, l.cluster, records.NodeName)
	if set != nil || err != nil {
		return err
	}
	return hint.With(
		fmt.Errorf("cluster %q: liqonet state remains in the kernels of nodes without a helper to remove it: %s", l.cluster.Context, missing),
		"bring the helpers back with liqoctl network init, then run this again; liqoctl network reset --force does without them")
}
