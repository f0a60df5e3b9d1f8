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

// How a gateway ends that is not the only one.
const (
	// drainMost is how long it forwards at most for those that do not turn to others. The pod's grace period is longer.
	drainMost  = 15 * time.Second
	drainEvery = 50 * time.Millisecond // between two looks whether all have
	// drainMoment is how long nobody must need it: for packets on their way, and for those that find others worse.
	drainMoment = 500 * time.Millisecond
)

// drain returns when the gateway may end: at once where it is the only one of its peering, or the peering is removed, else when
// all nodes and gateways of the peer that are alive have said that they send their packets by others. Until then the gateway
// says that it drains, and forwards as ever.
func (l *gatewayLoop) drain(ctx context.Context) {
	v := l.served.Load()
	if v == nil || len(v.peering.Gateways) < 2 {
		return
	}
	removed := func() bool {
		return named[*corev1.ConfigMap](l.peering, l.Namespace, records.PeeringName(l.ID.Peering)) == nil
	}
	l.Log.Info("draining")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, drainMost)
	defer cancel()
	l.echoes.drain()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for needed := begin; time.Since(needed) < drainMoment && !removed(); {
		select {
		case <-ctx.Done():
			l.Log.Warn("ending, though some still send packets", "after", time.Since(begin))
			return
		case <-tick.C:
		}
		if !l.echoes.idle() {
			needed = time.Now()
		}
	}
	l.Log.Info("drained", "after", time.Since(begin))
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
