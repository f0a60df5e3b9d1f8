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
	// successionMost is how long the only gateway forwards at most until there is a pod that succeeds it. In a rollout
	// none comes, because the Deployment recreates the pod: that delays the rollout, which interrupts then as before.
	successionMost = 10 * time.Second
	drainEvery     = 50 * time.Millisecond // between two looks whether all have turned to others
	// drainLooks in a row, half a second, must find that none sends here: for packets on their way. Looks are counted,
	// not time: a process that gets no processor has not seen what waits in its sockets and queues.
	drainLooks = 10
)

// drain returns when the gateway may end: when the peering is removed, or nobody needs this pod any more. Until then it
// forwards as ever.
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

// unneeded returns a function that reports whether the gateway may end. Once all nodes and gateways of the peer that
// are alive have reported that they send their packets by others, it announces its end, and they have to report that
// again, for a moment: from then on none returns to it, though another gateway may not answer.
func (l *gatewayLoop) unneeded() func() bool {
	looks := 0
	return func() bool {
		looks++
		if !l.echoes.idle() || l.echoes.announceEnd() {
			looks = 0
		}
		return looks >= drainLooks
	}
}

// crosses reports whether any tunnel is answered.
func (g *gatewayEchoes) crosses() bool {
	return slices.ContainsFunc(g.all(), func(t *tunnelEchoes) bool { s, _ := t.standing(); return s > useless })
}

// drain has all echoes from now on report that this gateway drains.
func (g *gatewayEchoes) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.hurry()
}

// announceEnd has all echoes from now on report that this gateway has no way on. The result is false if they do
// already.
func (g *gatewayEchoes) announceEnd() bool {
	g.mu.Lock()
	first := g.ending.IsZero()
	if first {
		g.ending = time.Now()
	}
	g.mu.Unlock()
	g.hurry()
	return first
}

// hurry sends the next echo in each tunnel immediately; nodes ask themselves.
func (g *gatewayEchoes) hurry() {
	for _, t := range g.all() {
		t.hurry()
	}
}

// idle reports whether all that are alive have reported that they send no packets of pods here, since this gateway
// announced its end if it has. A gateway of the peer that does not answer may stand still, and have packets for this
// one.
func (g *gatewayEchoes) idle() bool {
	g.mu.Lock()
	since := g.ending
	g.mu.Unlock()
	sends := func(t *tunnelEchoes) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return sends(t.asked, since, t.farIdle)
	}
	return !slices.ContainsFunc(g.all(), sends) && g.nodes.idle(since)
}

// idle reports whether all nodes that are alive have reported that they send no packets of pods here, since a time.
func (n *nodePaths) idle(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !slices.ContainsFunc(n.nodes, func(node reportedNode) bool {
		p := n.paths[node.Internal]
		return sends(p.echo, since, p.unused)
	})
}

// sends reports whether a node or gateway of the peer is alive that has not reported since a time that it sends no
// packets of pods here; echo is the time of its last echo.
func sends(echo, since time.Time, unused bool) bool {
	return time.Since(echo) < health.NodeSilence && (!unused || echo.Before(since))
}
