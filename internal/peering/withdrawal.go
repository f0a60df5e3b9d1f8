package peering

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// withdrawal removes peerings, and the installation if asked, from one cluster.
type withdrawal struct {
	cluster  *cluster.Cluster
	reporter Reporter
	// force goes on where nodes cannot confirm.
	force    bool
	changes  []cluster.Change
	released []ipam.Reservation
}

// end ends the traffic of a peering: the nodes give up its routes and say so, its gateway goes.
func (w *withdrawal) end(ctx context.Context, peering string) error {
	document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: records.PeeringName(peering), Namespace: w.cluster.Namespace}}
	if err := w.delete(ctx, document); err != nil {
		return err
	}
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: records.GatewayName(peering), Namespace: w.cluster.Namespace}}
	var deleted []cluster.Change
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		deleted, err = w.cluster.Delete(inner, gateway)
		return err
	})
	group.Go(func() error {
		what := fmt.Sprintf("the nodes of cluster %q to give up peering %q", w.cluster.Context, peering)
		return w.await(inner, what, func(n records.Node) bool { return !slices.Contains(n.Peerings, peering) })
	})
	err := group.Wait()
	w.changes = append(w.changes, altering(deleted)...)
	return err
}

// clean removes what is left of a peering whose traffic has ended, its ranges last: nobody may be given them
// while a node could still have routes for them. Nodes hold back what is reserved for a peering, and so give that up then.
func (w *withdrawal) clean(ctx context.Context, peering string) error {
	objects, err := w.cluster.List(ctx, peeringSelector(peering))
	if err != nil {
		return err
	}
	if err := w.delete(ctx, objects...); err != nil {
		return err
	}
	var released []ipam.Reservation
	err = reservationsOf(w.cluster).Update(ctx, func(r *ipam.Registry) (err error) {
		released, err = releasePeer(r, peering)
		return err
	})
	if err != nil {
		return explainAddresses(w.cluster.Context, err)
	}
	w.released = append(w.released, released...)
	what := fmt.Sprintf("the nodes of cluster %q to guard nothing of peering %q any more", w.cluster.Context, peering)
	return w.await(ctx, what, func(n records.Node) bool { return !slices.Contains(n.Guarded, peering) })
}

// uninstall removes the installation. The fabric goes first: that is what tells the node helpers to empty their
// kernels, and they must have done so before they are gone themselves.
func (w *withdrawal) uninstall(ctx context.Context) error {
	fabric := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: records.FabricName, Namespace: w.cluster.Namespace}}
	if err := w.delete(ctx, fabric); err != nil {
		return err
	}
	what := fmt.Sprintf("the nodes of cluster %q to empty their kernels", w.cluster.Context)
	if err := w.await(ctx, what, func(n records.Node) bool { return n.Clean }); err != nil {
		return err
	}
	objects, err := w.installed(ctx)
	if err != nil {
		return err
	}
	return w.delete(ctx, objects...)
}

// installed are the objects in the namespace that are ours, and all that an installation may have outside it.
func (w *withdrawal) installed(ctx context.Context) ([]cluster.Object, error) {
	objects, err := w.cluster.List(ctx, records.LabelComponent)
	if err != nil {
		return nil, err
	}
	// The image does not matter to what is deleted, and what the API server does not know is not there.
	base, err := templates.Base(templates.BaseValues{Namespace: w.cluster.Namespace, Image: "any", Policies: true})
	if err != nil {
		return nil, err
	}
	translation, err := templates.Translation(templates.TranslationValues{Namespace: w.cluster.Namespace, Image: "any"})
	if err != nil {
		return nil, err
	}
	for _, object := range slices.Concat(base, translation) {
		if object.GetNamespace() == "" {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func (w *withdrawal) delete(ctx context.Context, objects ...cluster.Object) error {
	changes, err := w.cluster.Delete(ctx, objects...)
	w.changes = append(w.changes, altering(changes)...)
	return err
}

// await waits until every live node reports what done asks for. A node that is not Ready cannot, and must not
// hold up the others: its kernel follows when it is back, or is gone with it.
func (w *withdrawal) await(ctx context.Context, what string, done func(records.Node) bool) error {
	if w.cluster.IsDryRun() {
		return nil
	}
	live, err := readyNodes(ctx, w.cluster)
	if err != nil {
		return err
	}
	leases, err := listLeases(ctx, w.cluster)
	if err != nil {
		return err
	}
	nodes, err := holders(leases)
	if err != nil {
		return err
	}
	confirmed := func(n *records.Node) bool { return n != nil && done(*n) }
	silent := unconfirmed(nodes, func(name string) bool { return !live[name] }, confirmed)
	if len(silent) > 0 {
		w.reporter.Warn(fmt.Sprintf("cluster %q: skipping node %s: not Ready", w.cluster.Context, strings.Join(silent, ", ")),
			"a node that comes back empties its kernel only while its helper runs there; one that restarts has nothing left")
	}
	missing := func(nodes map[string]*records.Node) string {
		names := unconfirmed(nodes, func(name string) bool { return live[name] }, confirmed)
		if len(names) == 0 {
			return ""
		}
		return "not yet: node " + strings.Join(names, ", ")
	}
	if missing(nodes) == "" {
		return nil
	}
	if err = w.helperRuns(ctx, missing(nodes)); err == nil {
		err = w.cluster.FailFast(ctx, templates.NodePods(), func(ctx context.Context) error {
			return cluster.Wait(ctx, w.cluster, cluster.Labelled(selector(records.ComponentNode)), what,
				func(leases []*coordinationv1.Lease) (string, error) {
					nodes, err := holders(leases)
					return missing(nodes), err
				})
		})
	}
	if err != nil && w.force && ctx.Err() == nil {
		w.reporter.Warn(err.Error(), "restart these nodes to clear their kernels")
		return nil
	}
	return err
}

// unconfirmed names the nodes of concern that have not confirmed, sorted.
func unconfirmed(nodes map[string]*records.Node, concerns func(name string) bool, confirmed func(*records.Node) bool) []string {
	var names []string
	for name, n := range nodes {
		if concerns(name) && !confirmed(n) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// helperRuns refuses to wait for nodes that have no helper any more.
func (w *withdrawal) helperRuns(ctx context.Context, missing string) error {
	set, err := cluster.Find[*appsv1.DaemonSet](ctx, w.cluster, records.NodeName)
	if set != nil || err != nil {
		return err
	}
	return withHint(
		fmt.Errorf("cluster %q: liqonet state remains in the kernels of nodes without a helper to remove it: %s", w.cluster.Context, missing),
		"bring the helpers back with liqoctl network init, then run this again; liqoctl network reset --force does without them")
}

// removal describes what was removed.
func (w *withdrawal) removal(peerings []string) Removal {
	r := Removal{Context: w.cluster.Context, Peerings: peerings, Objects: w.changes}
	for _, held := range w.released {
		r.Released = append(r.Released, ReleasedRange{Range: held.Range, Use: held.Use()})
	}
	return r
}

// undo removes what a failed connect made at this end: the peering, and the installation unless others use it
// by now. What another run made, or completed, at the same time stays.
func (e *end) undo(ctx context.Context) error {
	w := &withdrawal{cluster: e.Cluster, reporter: e.reporter}
	if e.joining {
		others, err := ofOthers(ctx, e.Cluster, records.PeeringName(e.peering), e.run)
		if err != nil {
			return err
		}
		e.joining = !others
	}
	if e.joining {
		if err := w.end(ctx, e.peering); err != nil {
			return err
		}
		if err := w.clean(ctx, e.peering); err != nil {
			return err
		}
	}
	if !e.installing {
		return nil
	}
	others, err := ofOthers(ctx, e.Cluster, records.FabricName, e.run)
	if err != nil {
		return err
	}
	left, err := traces(ctx, e.Cluster)
	if err != nil {
		return err
	}
	if e.installing = !others && len(left) == 0; !e.installing {
		return nil
	}
	return w.uninstall(ctx)
}
