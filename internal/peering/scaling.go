package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
)

// replaceTime is how long one of several gateways may take to carry packets again before the next one is replaced.
// Where the tunnel does not work, nothing is lost by going on.
const replaceTime = 30 * time.Second

// drainTime is how long the pods of gateways may take to end: their grace period, and what it takes to see that.
const drainTime = 40 * time.Second

// lostNodeHint is for a pod that does not end.
const lostNodeHint = "is its node lost? remove the Node object, or start the node; then run this again"

// looksTime is how long a gateway that carries packets takes at most to report that, and half as much again.
const looksTime = 3 * health.ReportEvery / 2

// applyGateways applies the objects of gateways. Of several that stand, those that change are replaced one after the
// other.
func (e *end) applyGateways(ctx context.Context, objects []kube.Object) error {
	deployments := make(map[string]kube.Object)
	objects = slices.DeleteFunc(objects, func(o kube.Object) bool {
		_, is := o.(*appsv1.Deployment)
		if is {
			deployments[o.GetName()] = o
		}
		return is
	})
	if err := e.apply(ctx, e.have != nil, objects...); err != nil {
		return err
	}
	for i, id := range e.gatewayIDs() {
		if err := e.applyGateway(ctx, i, deployments[id.Name()]); err != nil {
			return err
		}
	}
	return nil
}

// applyGateway applies the Deployment of a gateway, by its number less one. Where there are several, at either end,
// only one gateway of the peering is replaced at a time.
func (e *end) applyGateway(ctx context.Context, i int, deployment kube.Object) error {
	id := e.gatewayIDs()[i]
	if e.rekeyed[i] {
		if err := e.endRekeyed(ctx, id); err != nil {
			return err
		}
	}
	if stays, err := e.stays(ctx, i); stays || err != nil {
		return err
	}
	alone := e.count() == 1 && e.peer.count() == 1
	if !e.stands(i) || e.rekeyed[i] || alone || e.cluster.IsDryRun() {
		return e.apply(ctx, e.have != nil, deployment)
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	before := len(e.changes)
	if err := e.apply(ctx, true, deployment); err != nil || len(e.changes) == before {
		return err
	}
	return e.awaitReplaced(ctx, id)
}

// stays reports whether a gateway is left as it runs, because others are only added to it.
func (e *end) stays(ctx context.Context, i int) (bool, error) {
	if !e.adding || !e.stands(i) || e.rekeyed[i] {
		return false, nil
	}
	d, err := kube.Find[*appsv1.Deployment](ctx, e.cluster, e.gatewayIDs()[i].Name())
	return d != nil, err
}

// endRekeyed ends a gateway whose key is no more: it would go on with it, for it reads keys once. The key of a pod that
// does not end may be in foreign hands: the peer must not accept it any longer.
func (e *end) endRekeyed(ctx context.Context, id records.GatewayID) error {
	bounded, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	err := e.remove(bounded, &appsv1.Deployment{ObjectMeta: inventory.Meta(e.cluster.Namespace, id.Name())})
	if ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err == nil {
		stranded, errLook := e.cluster.Stranded(ctx, inventory.GatewaySelector(id))
		if len(stranded) == 0 {
			return errLook
		}
		err = fmt.Errorf("pod %s stays", strings.Join(stranded, ", "))
	} else {
		d, errFind := kube.Find[*appsv1.Deployment](ctx, e.cluster, id.Name())
		if errFind != nil || d == nil || d.DeletionTimestamp == nil {
			// It may go on with its old key: the next run finds that by the peer's record.
			return errors.Join(e.endless(id, err), errFind)
		}
	}
	return errors.Join(e.endless(id, err), e.peer.writePeerKeys(ctx))
}

// endless is the error for a gateway whose pod does not end.
func (e *end) endless(id records.GatewayID, why error) error {
	return hint.With(fmt.Errorf("gateway %d of cluster %q does not end: %w", id.Number, e.cluster.Context, why), lostNodeHint)
}

// awaitReplaced waits until a gateway carries packets again. One whose pod cannot start is an error: the others stay.
func (e *end) awaitReplaced(ctx context.Context, id records.GatewayID) error {
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	if _, err := e.proveBy(bounded, id); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return nil
}

// drainGateways ends the gateways that either end is to have no more, one end after the other, once those that stay
// carry packets.
func (c *connector) drainGateways(ctx context.Context) error {
	if c.local.excess() == nil && c.remote.excess() == nil {
		return nil
	}
	// A gateway with a new key carries packets once the peer's record names the key.
	for _, e := range c.ends() {
		if err := e.writePeerKeys(ctx); err != nil {
			return err
		}
	}
	if err := c.both(ctx, (*end).awaitStaying); err != nil {
		return err
	}
	for _, e := range c.ends() {
		if err := e.endGateways(ctx, e.excess()); err != nil {
			return err
		}
	}
	return nil
}

// writePeerKeys writes the new keys of the peer's gateways into this end's record, and nothing else.
func (e *end) writePeerKeys(ctx context.Context) error {
	if e.have == nil || e.cluster.IsDryRun() || !slices.Contains(e.peer.rekeyed, true) {
		return nil
	}
	p := *e.written
	p.Gateways = slices.Clone(p.Gateways)
	for g := range p.Gateways {
		tunnels := slices.Clone(p.Gateways[g].Tunnels)
		for i := range min(len(tunnels), len(e.peer.rekeyed)) {
			if e.peer.rekeyed[i] {
				tunnels[i].PublicKey = e.peer.keys[i].Public()
			}
		}
		p.Gateways[g].Tunnels = tunnels
	}
	return e.write(ctx, p)
}

// awaitStaying waits until all gateways that stay carry packets. Where some do not in time, one is enough; and where
// none does, those that are about to end must not carry any either.
func (e *end) awaitStaying(ctx context.Context) error {
	if e.have == nil || e.cluster.IsDryRun() {
		return nil
	}
	ids := e.have.GatewayIDs()
	stays := min(e.count(), len(ids))
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	carries := make([]bool, len(ids))
	var group sync.WaitGroup
	for i, id := range ids[:stays] {
		group.Go(func() { carries[i] = e.awaitCarrying(bounded, id, e.rekeyed[i]) })
	}
	group.Wait()
	if ctx.Err() != nil || slices.Contains(carries[:stays], true) {
		return ctx.Err()
	}
	last, cancel := context.WithTimeout(ctx, looksTime)
	defer cancel()
	for i, id := range ids[stays:] {
		group.Go(func() { carries[stays+i] = e.awaitCarrying(last, id, false) })
	}
	group.Wait()
	if ctx.Err() != nil || !slices.Contains(carries, true) {
		return ctx.Err()
	}
	return hint.With(fmt.Errorf("cluster %q: no packets cross by the gateways that would stay: %d of %d", e.cluster.Context, stays, len(ids)),
		"the others are kept; see why with: liqoctl network status -o wide")
}

// awaitCarrying waits until a gateway reports that packets of all nodes cross by it, through tunnels that stay. Where
// it has been renewed, only packets from now on count.
func (e *end) awaitCarrying(ctx context.Context, id records.GatewayID, renewed bool) bool {
	w := witness{nodes: e.nodes, renewed: renewed}
	err := inventory.AwaitStatus(ctx, e.cluster, id, "packets to cross", func(s *records.Status) string {
		if s != nil && len(s.Tunnels) > e.peer.count() {
			trimmed := *s
			trimmed.TunnelStatus, trimmed.Tunnels = s.Tunnels[0], s.Tunnels[:e.peer.count()]
			s = &trimmed
		}
		return w.look(s, time.Now())
	})
	return err == nil
}

// excess are the Deployments of the gateways that the end is to have no more. Records still name them when these go:
// the pods forward until nodes and the peer's gateways take others.
func (e *end) excess() (deployments []kube.Object) {
	if e.have == nil || len(e.have.Gateways) <= e.count() {
		return nil
	}
	for _, id := range e.have.GatewayIDs()[e.count():] {
		deployments = append(deployments, &appsv1.Deployment{ObjectMeta: inventory.Meta(e.cluster.Namespace, id.Name())})
	}
	return deployments
}

// endGateways removes Deployments of gateways. A pod on a lost node does not end, and is not waited for.
func (e *end) endGateways(ctx context.Context, deployments []kube.Object) error {
	bounded, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	err := e.remove(bounded, deployments...)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		e.reporter.Note(fmt.Sprintf("cluster %q: a gateway that is removed does not end: is its node lost?", e.cluster.Context))
		return nil
	}
	if err == nil && len(deployments) > 0 {
		stranded, _ := e.cluster.Stranded(ctx, inventory.GatewaysSelector(e.peering)) // a remark
		for _, pod := range stranded {
			e.reporter.Note(fmt.Sprintf("cluster %q: pod %s stays until its node is back, or its Node object is deleted", e.cluster.Context, pod))
		}
	}
	return err
}

// releaseGateways removes the gateways that the peering has no more. Records no longer name them by now, and packets
// were seen to cross by those that stay. It also removes what an interrupted run left of such gateways.
func (e *end) releaseGateways(ctx context.Context) error {
	objects, err := e.cluster.List(ctx, inventory.PeeringSelector(e.peering))
	if err != nil {
		return err
	}
	var deployments, others []kube.Object
	for _, o := range objects {
		_, is := o.(*appsv1.Deployment)
		switch {
		case !surplus(o, len(e.written.Gateways)):
		case !is:
			others = append(others, o)
		case o.GetDeletionTimestamp() == nil: // else its end was waited for
			deployments = append(deployments, o)
		}
	}
	if err := e.endGateways(ctx, deployments); err != nil {
		return err
	}
	if err := e.remove(ctx, others...); err != nil {
		return err
	}
	return inventory.UpdateReservations(ctx, e.cluster, func(r *ipam.Registry) error { return choose.ReleaseGateways(r, *e.written) })
}

// surplus reports whether an object belongs to a gateway beyond so many, or to several where there is one.
func surplus(o kube.Object, count int) bool {
	if _, is := o.(*policyv1.PodDisruptionBudget); is {
		return count == 1
	}
	number, err := strconv.Atoi(o.GetLabels()[records.LabelGateway])
	return err == nil && number > count
}
