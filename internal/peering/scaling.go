package peering

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// replaceTime is how long one of several gateways may take to carry packets again before the next one is replaced. Where the
// tunnel does not work, nothing is lost by going on.
const replaceTime = 30 * time.Second

// applyGateways applies the objects of gateways. Of several that stand, those that change are replaced one after the other.
func (e *end) applyGateways(ctx context.Context, objects []cluster.Object) error {
	deployments := make(map[string]cluster.Object)
	objects = slices.DeleteFunc(objects, func(o cluster.Object) bool {
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
		if e.rekeyed[i] {
			// A gateway that stands would go on with keys that are no more: it reads them once.
			if err := e.remove(ctx, &appsv1.Deployment{ObjectMeta: inventory.Meta(e.cluster.Namespace, id.Name())}); err != nil {
				return err
			}
		}
		before := len(e.changes)
		if err := e.apply(ctx, e.have != nil, deployments[id.Name()]); err != nil {
			return err
		}
		if e.stands(i) && len(e.changes) > before && e.count() > 1 && !e.rekeyed[i] && !e.cluster.IsDryRun() {
			if err := e.awaitReplaced(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
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

// releaseGateways removes the gateways that the peering has no more. Records no longer name them by now, and packets were
// seen to cross by those that stay. It also removes what an interrupted run left of such gateways.
func (e *end) releaseGateways(ctx context.Context) error {
	live := &e.written
	if !e.cluster.IsDryRun() { // another run may have added some meanwhile
		var err error
		live, err = inventory.Record[records.Peering](ctx, e.cluster, records.PeeringName(e.peering))
		if live == nil || err != nil {
			return err
		}
	}
	objects, err := e.cluster.List(ctx, inventory.PeeringSelector(e.peering))
	if err != nil {
		return err
	}
	stays := func(o cluster.Object) bool { return !surplus(o, len(live.Gateways)) }
	if err := e.remove(ctx, slices.DeleteFunc(objects, stays)...); err != nil {
		return err
	}
	return inventory.UpdateReservations(ctx, e.cluster, func(r *ipam.Registry) error { return addresses.ReleaseGateways(r, *live) })
}

// surplus reports whether an object belongs to a gateway beyond so many, or to several where there is one.
func surplus(o cluster.Object, count int) bool {
	if _, is := o.(*policyv1.PodDisruptionBudget); is {
		return count == 1
	}
	number, err := strconv.Atoi(o.GetLabels()[records.LabelGateway])
	return err == nil && number > count
}
