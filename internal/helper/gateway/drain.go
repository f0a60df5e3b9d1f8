//go:build linux

package gateway

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/membership"
)

// Parameters of a gateway's shutdown.
const (
	// drainMost bounds the time for which the gateway forwards for peers that do not switch. The pod's grace period is
	// longer.
	drainMost = 15 * time.Second
	// successionMost bounds the time for which the only gateway forwards until its successor pod exists. In a rollout
	// there is none, because the Deployment recreates the pod: that delays the rollout, which then interrupts traffic
	// as before.
	successionMost = 10 * time.Second
	drainEvery     = 50 * time.Millisecond // interval of the checks whether all use other gateways
)

// drain returns when the gateway may end: when the peering is removed, or this pod is no longer needed. Until then it
// forwards packets.
func (l *loop) drain(ctx context.Context) {
	v := l.served.Load()
	if v == nil {
		return
	}
	begin, most := time.Now(), successionMost
	over := func() bool { return l.succeeded() || !l.echoes.crosses() }
	if len(v.peering.Gateways) > 1 {
		l.echoes.drain()
		most, over = drainMost, l.echoes.unneeded
	}
	l.Log.Info("draining")
	err := wait.PollUntilContextTimeout(ctx, drainEvery, most, true, func(context.Context) (bool, error) {
		return over() || cache.Named[*corev1.ConfigMap](l.peering, l.Namespace, records.PeeringName(l.ID.Peering)) == nil, nil
	})
	if err != nil {
		l.Log.Warn("ending, though it may be needed", "after", time.Since(begin))
		return
	}
	l.Log.Info("drained", "after", time.Since(begin))
}

// succeeded reports whether the gateway has another pod already, as the only gateway has soon after an eviction.
func (l *loop) succeeded() bool {
	pod, _ := l.recorded()
	return pod != "" && pod != l.Pod
}

// crosses reports whether any tunnel is answered.
func (g *echoes) crosses() bool {
	return slices.ContainsFunc(g.all(), func(t *peerTunnel) bool { s, _ := t.standing(); return s > membership.Down })
}

// drain makes all further echoes announce that this gateway drains.
func (g *echoes) drain() {
	g.mu.Lock()
	g.leaving.Drain()
	g.mu.Unlock()
	g.sendNow()
}

// senders returns the nodes and the peer's gateways. A gateway of the peer that does not answer may be stopped, and
// still have packets for this one.
func (g *echoes) senders() []membership.Sender {
	all := g.nodes.senders()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.tunnels {
		all = append(all, t.sender)
	}
	return all
}

// unneeded reports whether this gateway may end.
func (g *echoes) unneeded() bool {
	senders := g.senders()
	g.mu.Lock()
	over, announce := g.leaving.Check(senders, time.Now())
	g.mu.Unlock()
	if announce {
		g.sendNow()
	}
	return over
}

// sendNow sends the next echo in each tunnel immediately; nodes send requests themselves.
func (g *echoes) sendNow() {
	for _, t := range g.all() {
		t.sendNow()
	}
}

// senders returns the nodes that have sent an echo.
func (n *nodePaths) senders() (all []membership.Sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, path := range n.paths {
		all = append(all, path.Sender)
	}
	return all
}
