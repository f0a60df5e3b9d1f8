//go:build linux

package gateway

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

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

// succession records whether a gateway's pod is the latest.
type succession struct {
	epoch    atomic.Uint32 // as membership.Epoch; 0: not known yet
	outlived atomic.Bool   // there is a later pod: this one must not use the key any more
}

// begin sets this pod's epoch, and whether the record has a later pod already, as after a restart of the container.
// Then watchSuccessor asks the API server.
func (l *loop) begin() {
	pod, latest := l.recorded()
	own := l.ownEpoch(latest)
	l.echoes.own.epoch.Store(uint32(own))
	if pod != l.Pod && latest > own {
		l.echoes.own.outlived.Store(true)
		wakeup.Notify(l.echoes.claim)
	}
}

// ownEpoch returns this pod's epoch: that of an earlier process in the pod, else the last one plus 1 or later.
func (l *loop) ownEpoch(last membership.Epoch) membership.Epoch {
	file := filepath.Join(cmp.Or(l.Epoch, os.DevNull), epochFile)
	text, _ := os.ReadFile(file) // does not exist at first
	if e := membership.ParseEpoch(string(text), time.Now()); e != 0 {
		return e
	}
	e := membership.NextEpoch(last, time.Now())
	// Without the volume, the pod counts as a later one after a restart.
	_ = os.WriteFile(file, []byte(e.String()), 0o600)
	return e
}

// recorded returns the pod in this gateway's record, and its epoch.
func (l *loop) recorded() (string, membership.Epoch) {
	g, _ := single[records.Gateway](l.location, l.Namespace, l.ID.Name()) // an unreadable record has no pod
	return g.Pod, membership.Epoch(g.Epoch).Known(time.Now())
}

// watchSuccessor reads the gateway's pod from the API server whenever the peer reports a later pod, until ctx ends.
// Unless that is this pod, this pod steps down: it closes its tunnel.
func (l *loop) watchSuccessor(ctx context.Context) {
	for {
		if !l.echoes.own.outlived.Load() {
			select {
			case <-ctx.Done():
				return
			case <-l.echoes.claim:
			}
		}
		if over := !l.confirmed(ctx); l.echoes.own.outlived.Swap(over) != over {
			l.Log.Warn("the peer has received echoes of a later pod of this gateway", "stepsDown", over)
			wakeup.Notify(l.wake)
		}
		if !wakeup.Sleep(ctx, successorEvery) {
			return
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
	if err != nil {
		return false
	}
	g, _ := cache.Record[records.Gateway](cm) // an unreadable record has no pod
	return g.Pod == l.Pod || g.Pod == ""
}
