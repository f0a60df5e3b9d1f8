//go:build linux

package helper

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// Kubernetes replaces the pod of a node that lost contact with the API server, while that pod may keep running: then
// two pods have one key, and the peer would answer whichever pod sent last. The epoch of a pod is larger than that of
// each earlier pod of its gateway. Echoes of a gateway contain its own epoch and the latest epoch that it has received
// from the peer's gateway. Only echoes in the tunnel count, which require its keys.

const (
	epochFile = "epoch"
	// epochAhead is the largest expected difference of clocks: a later time is not a valid epoch.
	epochAhead = 24 * time.Hour
	// successorTimeout is the timeout for reading the gateway's pod from the API server, and successorEvery the
	// interval of these reads while the peer reports a later pod.
	successorTimeout = time.Second
	successorEvery   = 10 * time.Second
)

// epoch is a time in Unix seconds; zero: unknown.
type epoch uint32

// plausible reports whether the epoch can be that of a pod.
func (e epoch) plausible() bool {
	return e != 0 && time.Unix(int64(e), 0).Before(time.Now().Add(epochAhead))
}

// known returns the epoch, or zero if it is not plausible.
func (e epoch) known() epoch {
	if e.plausible() {
		return e
	}
	return 0
}

// succession records whether a gateway's pod is the latest.
type succession struct {
	epoch epoch         // set before other goroutines use it
	claim chan struct{} // of size one: the peer has received a later epoch

	outlived atomic.Bool // there is a later pod: this one must not use the key any more
}

// received handles the latest epoch that the peer has received.
func (s *succession) received(e epoch) {
	if s.epoch != 0 && e > s.epoch && e.plausible() {
		notify(s.claim)
	}
}

// beginEpoch returns this pod's epoch: that of an earlier process in the pod, else the recorded one plus 1 or later.
func (l *gatewayLoop) beginEpoch() epoch {
	file := filepath.Join(cmp.Or(l.Epoch, os.DevNull), epochFile)
	text, _ := os.ReadFile(file) // does not exist at first
	if e := parseEpoch(string(text)); e != 0 {
		return e
	}
	_, last := l.recorded(l.ownLocation())
	e := max(epoch(time.Now().Unix()), last+1)
	// Without the volume, the pod counts as a later one after a restart.
	_ = os.WriteFile(file, []byte(e.String()), 0o600)
	return e
}

// ownLocation returns the ConfigMap in which this gateway reports its location; nil if there is none.
func (l *gatewayLoop) ownLocation() *corev1.ConfigMap {
	return named[*corev1.ConfigMap](l.location, l.Namespace, l.ID.Name())
}

// recorded returns the pod in a gateway's ConfigMap, and its epoch.
func (l *gatewayLoop) recorded(cm *corev1.ConfigMap) (string, epoch) {
	if cm == nil {
		return "", 0
	}
	g, _ := recordOf[records.Gateway](cm) // an unreadable record has no pod
	return g.Pod, epoch(g.Epoch).known()
}

// watchSuccessor reads the gateway's pod from the API server whenever the peer reports a later pod, until ctx ends.
// Unless that is this pod, this pod steps down: it closes its tunnel.
func (l *gatewayLoop) watchSuccessor(ctx context.Context) {
	s := &l.echoes.own
	for {
		if !s.outlived.Load() {
			select {
			case <-ctx.Done():
				return
			case <-s.claim:
			}
		}
		if over := !l.confirmed(ctx); s.outlived.Swap(over) != over {
			l.Log.Warn("the peer has heard a later pod of this gateway", "stepsDown", over)
			notify(l.wake)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(successorEvery):
		}
	}
}

// confirmed reports whether the API server has this pod as the gateway's.
func (l *gatewayLoop) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, successorTimeout)
	defer cancel()
	cm, err := patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), l.ID.Name(), struct{}{}, nil) // changes nothing
	pod, _ := l.recorded(cm)
	return err == nil && pod == l.Pod
}

func (e epoch) String() string { return strconv.FormatUint(uint64(e), 10) }

// parseEpoch returns zero for an implausible epoch.
func parseEpoch(text string) epoch {
	n, _ := strconv.ParseUint(text, 10, 32)
	return epoch(n).known()
}
