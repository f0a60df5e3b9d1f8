//go:build linux

package helper

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// How a gateway ends.
const (
	// drainMost is how long it forwards at most for those that do not turn to others. The pod's grace period is longer.
	drainMost = 15 * time.Second
	// successionMost is how long the only gateway forwards at most until there is a pod that succeeds it. In a rollout none comes, because
	// the Deployment recreates the pod: that delays the rollout, which interrupts then as before.
	successionMost = 10 * time.Second
	drainEvery     = 50 * time.Millisecond // between two looks whether all have turned to others
	// drainMoment is how long nobody must need it: for packets on their way, and for those that find others worse.
	drainMoment = 500 * time.Millisecond
)

// drain returns when the gateway may end: when the peering is removed, or nobody needs this pod any more. Until then it forwards as
// ever.
func (l *gatewayLoop) drain(ctx context.Context) {
	v := l.served.Load()
	if v == nil {
		return
	}
	begin, most := time.Now(), successionMost
	over := func() bool { return l.succeeded() || !l.echoes.crosses() }
	if len(v.peering.Gateways) > 1 {
		l.echoes.drain()
		most, over = drainMost, l.unneeded()
	}
	l.Log.Info("draining")
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for !over() && named[*corev1.ConfigMap](l.peering, l.Namespace, records.PeeringName(l.ID.Peering)) != nil {
		select {
		case <-ctx.Done():
			l.Log.Warn("ending, though it may be needed", "after", time.Since(begin))
			return
		case <-tick.C:
		}
	}
	l.Log.Info("drained", "after", time.Since(begin))
}

// succeeded reports whether the gateway has another pod already, as the only one that is evicted soon has.
func (l *gatewayLoop) succeeded() bool {
	pod, _ := l.recorded(l.ownLocation())
	return pod != "" && pod != l.Pod
}

// unneeded returns a function that reports whether all nodes and gateways of the peer that are alive have said for a moment that
// they send their packets by others.
func (l *gatewayLoop) unneeded() func() bool {
	needed := time.Now()
	return func() bool {
		if !l.echoes.idle() {
			needed = time.Now()
		}
		return time.Since(needed) >= drainMoment
	}
}

// crosses reports whether any tunnel is answered.
func (g *gatewayEchoes) crosses() bool {
	return slices.ContainsFunc(g.all(), func(t *tunnelEchoes) bool { s, _ := t.standing(); return s > useless })
}

// drain has all echoes from now on say that this gateway drains.
func (g *gatewayEchoes) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	for _, t := range g.all() {
		t.hurry() // nodes ask themselves
	}
}

// idle reports whether all that are alive have said that they send no packets of pods here.
func (g *gatewayEchoes) idle() bool {
	sends := func(t *tunnelEchoes) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.stands > useless && !t.farIdle
	}
	return !slices.ContainsFunc(g.all(), sends) && g.nodes.idle()
}

// idle reports whether all nodes that are alive have said that they send no packets of pods here.
func (n *nodePaths) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !slices.ContainsFunc(n.nodes, func(node reportedNode) bool {
		p := n.paths[node.Internal]
		return time.Since(p.echo) < health.NodeSilence && !p.unused
	})
}
