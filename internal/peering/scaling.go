package peering

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// replaceTime limits the wait for a replaced gateway to carry packets again, before the next one is replaced. If the
// tunnel does not work, proceeding interrupts nothing.
const replaceTime = 30 * time.Second

// drainTime limits the wait for the termination of gateways' pods: their grace period, and the time to observe it.
const drainTime = 40 * time.Second

// lostNodeHint is the hint for a pod that does not terminate.
const lostNodeHint = "is its node lost? remove the Node object, or start the node; then run this again"

// reportTime is one and a half of the interval of gateways' reports: the wait for the next report of a gateway.
const reportTime = 3 * health.ReportEvery / 2

// applyGateways applies the objects of gateways. Of several existing gateways, those that change are replaced one after
// the other.
func (m *member) applyGateways(ctx context.Context, objects []kube.Object) error {
	deployments := make(map[string]kube.Object)
	objects = slices.DeleteFunc(objects, func(o kube.Object) bool {
		_, is := o.(*appsv1.Deployment)
		if is {
			deployments[o.GetName()] = o
		}
		return is
	})
	if err := m.apply(ctx, m.have != nil, objects...); err != nil {
		return err
	}
	for i, id := range m.gatewayIDs() {
		if err := m.applyGateway(ctx, i, deployments[id.Name()]); err != nil {
			return err
		}
	}
	return nil
}

// applyGateway applies the Deployment of the gateway with number i+1. If one of the members has several gateways, only
// one gateway of the peering is replaced at a time. If its keys are others, no packets cross before the peer has them:
// then it is sufficient that its old pod ends.
func (m *member) applyGateway(ctx context.Context, i int, deployment kube.Object) error {
	id, exists := m.gatewayIDs()[i], m.running[i] != ""
	single := m.gatewayCount() == 1 && m.peerCount() == 1
	switch {
	case m.rekeyed(i):
		if err := m.apply(ctx, false, deployment); err != nil || m.cluster.IsDryRun() {
			return err
		}
		m.replaced[i] = false // its next pod starts with the new keys: the peer may have them
		return m.awaitOldPods(ctx, id, m.keys[i].ID())
	case m.addOnly && exists:
		return nil
	case !exists || single || m.cluster.IsDryRun():
		return m.apply(ctx, m.have != nil, deployment)
	}
	select {
	case m.replacing <- struct{}{}:
		defer func() { <-m.replacing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	before := len(m.changes)
	if err := m.apply(ctx, true, deployment); err != nil || len(m.changes) == before {
		return err
	}
	return m.awaitReplaced(ctx, id)
}

// awaitOldPods waits until no pod of a gateway has other keys than that of the identifier. One that does not terminate
// may be under foreign control: see unannounced.
func (m *member) awaitOldPods(ctx context.Context, id records.GatewayID, key string) error {
	bounded, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	old := func(pods []*corev1.Pod) (string, error) {
		for _, p := range pods {
			ended := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
			if !ended && p.Annotations[templates.AnnotationKey] != key {
				return "pod " + p.Name + " does not end", nil
			}
		}
		return "", nil
	}
	what := fmt.Sprintf("the pods of gateway %d with its old keys to end", id.Number)
	err := kube.Wait(bounded, m.cluster, kube.Labelled(inventory.GatewaySelector(id)), what, old)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	m.unannounced = true
	return hint.With(fmt.Errorf("gateway %d of cluster %q does not end: %w", id.Number, m.cluster.Context, err), lostNodeHint)
}

// awaitReplaced waits until a gateway carries packets again. If its pod cannot start, that is an error, and the other
// gateways are not replaced.
func (m *member) awaitReplaced(ctx context.Context, id records.GatewayID) error {
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	if _, err := m.verifyGateway(bounded, id); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return nil
}

// drainGateways removes excess gateways, of one member after the other, once the remaining ones carry packets.
func (c *connector) drainGateways(ctx context.Context) error {
	if !slices.ContainsFunc(c.members(), func(m *member) bool { return m.excess() != nil }) {
		return nil
	}
	// A gateway with a new key carries packets once the peer's record contains the key.
	if err := c.announce(ctx); err != nil {
		return err
	}
	await := func(m *member, ctx context.Context) error { return m.awaitRemaining(ctx, c.renewed) }
	if err := c.both(ctx, await); err != nil {
		return err
	}
	for _, m := range c.members() {
		if err := m.removeGateways(ctx, m.excess()); err != nil {
			return err
		}
	}
	return nil
}

// writePeerKeys writes only the new keys of the peer's gateways into this member's record: not those of a gateway that
// still runs with old ones, and carries packets.
func (m *member) writePeerKeys(ctx context.Context, far records.Offer) error {
	if m.have == nil || m.cluster.IsDryRun() {
		return nil
	}
	p := *m.written
	p.Gateways = slices.Clone(p.Gateways)
	for g := range p.Gateways {
		tunnels := slices.Clone(p.Gateways[g].Tunnels)
		for i := range min(len(tunnels), len(far.Gateways)) {
			if d := far.Gateways[i].Driver; d != (records.Driver{}) && !far.Gateways[i].Replaced {
				tunnels[i].Driver = d
			}
		}
		p.Gateways[g].Tunnels = tunnels
	}
	return m.write(ctx, p)
}

// awaitRemaining waits until all remaining gateways carry packets. If some do not in time, one is sufficient. If none
// does, the excess gateways must not carry any packets either. If keys were renewed, only packets from now on are
// sufficient.
func (m *member) awaitRemaining(ctx context.Context, renewed bool) error {
	if m.have == nil || m.cluster.IsDryRun() {
		return nil
	}
	ids := m.have.GatewayIDs()
	remaining := min(m.gatewayCount(), len(ids))
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	carries := make([]bool, len(ids))
	var group sync.WaitGroup
	for i, id := range ids[:remaining] {
		group.Go(func() { carries[i] = m.awaitCarrying(bounded, id, renewed || m.rekeyed(i)) })
	}
	group.Wait()
	if ctx.Err() != nil || slices.Contains(carries[:remaining], true) {
		return ctx.Err()
	}
	last, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	for i, id := range ids[remaining:] {
		group.Go(func() { carries[remaining+i] = m.awaitCarrying(last, id, false) })
	}
	group.Wait()
	if ctx.Err() != nil || !slices.Contains(carries, true) {
		return ctx.Err()
	}
	return hint.With(fmt.Errorf("cluster %q: no packets cross by the gateways that would stay: %d of %d", m.cluster.Context, remaining, len(ids)),
		"the others are kept; see why with: liqoctl network status -o wide")
}

// awaitCarrying waits until a gateway reports that it carries packets of all nodes, through tunnels that remain. If the
// gateway was renewed, only packets from now on are sufficient.
func (m *member) awaitCarrying(ctx context.Context, id records.GatewayID, renewed bool) bool {
	w := verification{nodes: m.nodes, renewed: renewed}
	err := inventory.AwaitStatus(ctx, m.cluster, id, "packets to cross", func(s *records.Status) string {
		if s != nil && len(s.Tunnels) > m.peerCount() {
			trimmed := *s
			trimmed.TunnelStatus, trimmed.Tunnels = s.Tunnels[0], s.Tunnels[:m.peerCount()]
			s = &trimmed
		}
		return w.check(s, time.Now())
	})
	return err == nil
}

// excess returns the Deployments of the gateways that the member will no longer have. Records still contain these
// gateways when they are removed: the pods forward until nodes and the peer's gateways use others.
func (m *member) excess() (deployments []kube.Object) {
	if m.have == nil || len(m.have.Gateways) <= m.gatewayCount() {
		return nil
	}
	for _, id := range m.have.GatewayIDs()[m.gatewayCount():] {
		deployments = append(deployments, &appsv1.Deployment{ObjectMeta: inventory.Meta(m.cluster.Namespace, id.Name())})
	}
	return deployments
}

// removeGateways removes Deployments of gateways. It does not wait for a pod on a lost node, which does not terminate.
func (m *member) removeGateways(ctx context.Context, deployments []kube.Object) error {
	bounded, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	err := m.remove(bounded, deployments...)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		m.reporter.Note(fmt.Sprintf("cluster %q: a gateway that is removed does not end: is its node lost?", m.cluster.Context))
		return nil
	}
	if err == nil && len(deployments) > 0 {
		stranded, _ := m.cluster.Stranded(ctx, inventory.GatewaysSelector(m.peering)) // best effort
		for _, pod := range stranded {
			m.reporter.Note(fmt.Sprintf("cluster %q: pod %s stays until its node is back, or its Node object is deleted", m.cluster.Context, pod))
		}
	}
	return err
}

// releaseGateways removes the remaining objects of gateways that the peering no longer has, and the Services and the
// Ingress that role and settings no longer want, also those of an interrupted run. Records no longer contain these, and
// the others are verified.
func (m *member) releaseGateways(ctx context.Context) error {
	objects, err := m.cluster.List(ctx, inventory.PeeringSelector(m.peering))
	if err != nil {
		return err
	}
	desired, err := m.gatewayObjects()
	if err != nil {
		return err
	}
	var deployments, others []kube.Object
	for _, o := range objects {
		_, is := o.(*appsv1.Deployment)
		switch {
		case !surplus(o, len(m.written.Gateways)) && !unwanted(o, desired):
		case !is:
			others = append(others, o)
		case o.GetDeletionTimestamp() == nil: // else an earlier deletion is in progress
			deployments = append(deployments, o)
		}
	}
	if err := m.removeGateways(ctx, deployments); err != nil {
		return err
	}
	return m.remove(ctx, others...)
}

// unwanted reports whether an object is a Service or an Ingress that is not desired.
func unwanted(o kube.Object, desired []kube.Object) bool {
	switch o.(type) {
	case *corev1.Service, *networkingv1.Ingress:
		return !slices.ContainsFunc(desired, func(d kube.Object) bool {
			return reflect.TypeOf(d) == reflect.TypeOf(o) && d.GetName() == o.GetName()
		})
	}
	return false
}

// surplus reports whether an object belongs to a gateway with a number above count, or only to a member with several
// gateways while count is 1.
func surplus(o kube.Object, count int) bool {
	if _, is := o.(*policyv1.PodDisruptionBudget); is {
		return count == 1
	}
	number, err := strconv.Atoi(o.GetLabels()[records.LabelGateway])
	return err == nil && number > count
}
