//go:build linux

package helper

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/health"
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
	drainEvery     = 50 * time.Millisecond // interval of the checks whether all have switched
	// drainLooks consecutive checks, half a second, must find no sender, because of packets in flight. Checks count and
	// not time: a process without CPU time has not read the contents of its sockets and queues.
	drainLooks = 10
)

// drain returns when the gateway may end: when the peering is removed, or this pod is no longer needed. Until then it
// forwards packets.
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

// succeeded reports whether the gateway has another pod already, as the only gateway has soon after an eviction.
func (l *gatewayLoop) succeeded() bool {
	pod, _ := l.recorded(l.ownLocation())
	return pod != "" && pod != l.Pod
}

// unneeded returns a function that reports whether the gateway may end. Once all live nodes and gateways of the peer
// have reported that they send their packets through others, the gateway announces its end, and they have to repeat
// that report for a moment: from then on none of them returns to it, even if another gateway does not answer.
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
	return slices.ContainsFunc(g.all(), func(t *tunnelEchoes) bool { s, _ := t.standing(); return s > membership.Down })
}

// drain makes all further echoes announce that this gateway drains.
func (g *gatewayEchoes) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.sendNow()
}

// announceEnd makes all further echoes announce that this gateway cannot forward. It returns false if they do so
// already.
func (g *gatewayEchoes) announceEnd() bool {
	g.mu.Lock()
	first := g.ending.IsZero()
	if first {
		g.ending = time.Now()
	}
	g.mu.Unlock()
	g.sendNow()
	return first
}

// sendNow sends the next echo in each tunnel immediately; nodes send requests themselves.
func (g *gatewayEchoes) sendNow() {
	for _, t := range g.all() {
		t.sendNow()
	}
}

// idle reports whether all live nodes and gateways have reported that they send no packets of pods to this gateway,
// since it announced its end if it has. A gateway of the peer that does not answer may be stopped, and still have
// packets for this one.
func (g *gatewayEchoes) idle() bool {
	g.mu.Lock()
	since := g.ending
	g.mu.Unlock()
	sends := func(t *tunnelEchoes) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return sends(t.asked, since, t.peerIdle)
	}
	return !slices.ContainsFunc(g.all(), sends) && g.nodes.idle(since)
}

// idle reports whether all live nodes have reported that they send no packets of pods to this gateway, since a time.
func (n *nodePaths) idle(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !slices.ContainsFunc(n.nodes, func(node reportedNode) bool {
		p := n.paths[node.Internal]
		return sends(p.echo, since, p.unused)
	})
}

// sends reports whether a node or gateway of the peer is alive and has not reported since a time that it sends no
// packets of pods to this gateway; echo is the time of its last echo.
func sends(echo, since time.Time, unused bool) bool {
	return time.Since(echo) < health.NodeSilence && (!unused || echo.Before(since))
}
