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

// Kubernetes replaces the pod of a node of which the API server hears no more, while that pod may go on: two pods then
// have one key, and the peer would answer whichever sent last. The epoch of a pod is larger than that of each earlier
// pod of its gateway. Echoes of a gateway carry its own epoch and the latest that it has received from the peer's
// gateway. Only echoes in the tunnel count, which nobody without its keys can send.

const (
	epochFile = "epoch"
	// epochAhead is by how much clocks may differ: what is later than that is nobody's epoch.
	epochAhead = 24 * time.Hour
	// successorTimeout is how long the API server may take to name the gateway's pod, and successorEvery how often it
	// is asked while the peer reports a later one.
	successorTimeout = time.Second
	successorEvery   = 10 * time.Second
)

// epoch is a time in Unix seconds; zero: not known.
type epoch uint32

// plausible reports whether a pod can have that epoch.
func (e epoch) plausible() bool {
	return e != 0 && time.Unix(int64(e), 0).Before(time.Now().Add(epochAhead))
}

// known is the epoch, or zero where no pod can have it.
func (e epoch) known() epoch {
	if e.plausible() {
		return e
	}
	return 0
}

// succession is whether a gateway's pod is the latest.
type succession struct {
	epoch epoch         // set before others use it
	claim chan struct{} // of size one: the peer has heard a later one

	outlived atomic.Bool // there is a later one: this one must not use the key any more
}

// received takes the latest epoch that the peer has received.
func (s *succession) received(e epoch) {
	if s.epoch != 0 && e > s.epoch && e.plausible() {
		notify(s.claim)
	}
}

// beginEpoch finds this pod's epoch: that of an earlier process in the pod, else one after that which the record has.
func (l *gatewayLoop) beginEpoch() epoch {
	file := filepath.Join(cmp.Or(l.Epoch, os.DevNull), epochFile)
	text, _ := os.ReadFile(file) // not there at first
	if e := parseEpoch(string(text)); e != 0 {
		return e
	}
	_, last := l.recorded(l.ownLocation())
	e := max(epoch(time.Now().Unix()), last+1)
	// Without the volume, the pod passes for a later one after a restart.
	_ = os.WriteFile(file, []byte(e.String()), 0o600)
	return e
}

// ownLocation is the ConfigMap in which this gateway reports where it is; nil: there is none.
func (l *gatewayLoop) ownLocation() *corev1.ConfigMap {
	return named[*corev1.ConfigMap](l.location, l.Namespace, l.ID.Name())
}

// recorded is the pod in a gateway's ConfigMap, and its epoch.
func (l *gatewayLoop) recorded(cm *corev1.ConfigMap) (string, epoch) {
	if cm == nil {
		return "", 0
	}
	g, _ := recordOf[records.Gateway](cm) // one that cannot be read names no pod
	return g.Pod, epoch(g.Epoch).known()
}

// watchSuccessor asks the API server, each time that the peer has heard a later pod, which one is the gateway's, until
// ctx ends. Unless it names this one, this one steps down: it has no tunnel.
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

// confirmed reports whether the API server names this pod as the gateway's.
func (l *gatewayLoop) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, successorTimeout)
	defer cancel()
	cm, err := patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), l.ID.Name(), struct{}{}, nil) // changes nothing
	pod, _ := l.recorded(cm)
	return err == nil && pod == l.Pod
}

func (e epoch) String() string { return strconv.FormatUint(uint64(e), 10) }

// parseEpoch returns zero for what no pod can have.
func parseEpoch(text string) epoch {
	n, _ := strconv.ParseUint(text, 10, 32)
	return epoch(n).known()
}
