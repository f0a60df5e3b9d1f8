//go:build linux

package gateway

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/membership"
)

const (
	epochFile = "epoch"
	// successorTimeout is the timeout for reading the gateway's pod from the API server, and successorEvery the
	// interval of these reads while the peer reports a later pod.
	successorTimeout = time.Second
	successorEvery   = 10 * time.Second
)

// succession records whether a gateway's pod is the latest. The lock of the gateway's echoes guards it.
type succession struct {
	epoch    membership.Epoch // 0: not known yet
	outlived bool             // there is a later pod: this one must not use the key any more
}

// before reports whether an epoch is that of a later pod.
func (s succession) before(e membership.Epoch) bool {
	return s.epoch != 0 && e.Known(time.Now()) > s.epoch
}

// succession returns whether this gateway's pod is the latest.
func (g *echoes) succession() succession {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

func (g *echoes) setEpoch(e membership.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own.epoch = e
}

// setOutlived sets whether there is a later pod, and reports whether that is new.
func (g *echoes) setOutlived(is bool) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.own.outlived != is
	g.own.outlived = is
	return news
}

// begin sets this pod's epoch, and whether the record has a later pod already, as after a restart of the container.
// Then watchSuccessor asks the API server.
func (l *loop) begin() {
	own := l.beginEpoch()
	l.echoes.setEpoch(own)
	pod, latest := l.recorded(l.ownLocation())
	if pod != l.Pod && latest > own {
		l.echoes.setOutlived(true)
		wakeup.Notify(l.echoes.claim)
	}
}

// beginEpoch returns this pod's epoch: that of an earlier process in the pod, else the recorded one plus 1 or later.
func (l *loop) beginEpoch() membership.Epoch {
	file := filepath.Join(cmp.Or(l.Epoch, os.DevNull), epochFile)
	text, _ := os.ReadFile(file) // does not exist at first
	if e := membership.ParseEpoch(string(text), time.Now()); e != 0 {
		return e
	}
	_, last := l.recorded(l.ownLocation())
	e := membership.NextEpoch(last, time.Now())
	// Without the volume, the pod counts as a later one after a restart.
	_ = os.WriteFile(file, []byte(e.String()), 0o600)
	return e
}

// ownLocation returns the ConfigMap in which this gateway reports its location; nil if there is none.
func (l *loop) ownLocation() *corev1.ConfigMap {
	return cache.Named[*corev1.ConfigMap](l.location, l.Namespace, l.ID.Name())
}

// recorded returns the pod in a gateway's ConfigMap, and its epoch.
func (l *loop) recorded(cm *corev1.ConfigMap) (string, membership.Epoch) {
	if cm == nil {
		return "", 0
	}
	g, _ := cache.Record[records.Gateway](cm) // an unreadable record has no pod
	return g.Pod, membership.Epoch(g.Epoch).Known(time.Now())
}

// watchSuccessor reads the gateway's pod from the API server whenever the peer reports a later pod, until ctx ends.
// Unless that is this pod, this pod steps down: it closes its tunnel.
func (l *loop) watchSuccessor(ctx context.Context) {
	for {
		if !l.echoes.succession().outlived {
			select {
			case <-ctx.Done():
				return
			case <-l.echoes.claim:
			}
		}
		if over := !l.confirmed(ctx); l.echoes.setOutlived(over) {
			l.Log.Warn("the peer has received echoes of a later pod of this gateway", "stepsDown", over)
			wakeup.Notify(l.wake)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(successorEvery):
		}
		select { // the peer may not report a later pod any more
		case <-l.echoes.claim:
		default:
		}
	}
}

// confirmed reports whether the API server has this pod as the gateway's.
func (l *loop) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, successorTimeout)
	defer cancel()
	// An empty patch returns the object without a right to read it.
	cm, err := publish.Patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), l.ID.Name(), struct{}{}, nil)
	pod, _ := l.recorded(cm)
	return err == nil && (pod == l.Pod || pod == "")
}
