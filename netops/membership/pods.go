package membership

import (
	"strconv"
	"time"
)

// Kubernetes replaces the pod of a node that lost contact with the API server, while that pod may keep running: then
// two pods have one key, and the peer would answer whichever pod sent last. The epoch of a pod is larger than that of
// each earlier pod of its gateway. Echoes of a gateway contain its own epoch and the latest epoch that it has received
// from the peer's gateway. Only echoes in the tunnel count, which require its keys. At each end the latest epoch
// counts.

const (
	// PodSilence is the time after the last echo of the latest pod after which an earlier one counts again.
	PodSilence = 10 * time.Second
	// podEvery is the minimum interval at which sessions of an earlier pod are ended.
	podEvery = time.Second
	// epochAhead is the largest expected difference of clocks: a later time is not a valid epoch.
	epochAhead = 24 * time.Hour
)

// Epoch is the start of a gateway's pod in Unix seconds, or later than that; zero: unknown.
type Epoch uint32

// NextEpoch returns the epoch of a pod that starts now, after one with the epoch last.
func NextEpoch(last Epoch, now time.Time) Epoch { return max(Epoch(now.Unix()), last.Known(now)+1) }

// ParseEpoch returns zero for a text that is no possible epoch.
func ParseEpoch(text string, now time.Time) Epoch {
	n, _ := strconv.ParseUint(text, 10, 32)
	return Epoch(n).Known(now)
}

// Known returns the epoch, or zero if no pod can have it.
func (e Epoch) Known(now time.Time) Epoch {
	if time.Unix(int64(e), 0).Before(now.Add(epochAhead)) {
		return e
	}
	return 0
}

func (e Epoch) String() string { return strconv.FormatUint(uint64(e), 10) }

// Pod is what an epoch in a message means.
type Pod int

// The meanings.
const (
	UnknownPod Pod = iota // the message has no possible epoch
	LatestPod             // the pod that counts
	NewPod                // a pod that counts from now on
	EarlierPod            // a pod that has a successor, which is heard
)

// Pods are the pods that use the key of a peer's gateway. In the zero value none is known.
type Pods struct {
	latest Epoch
	heard  time.Time // the latest, last
	ended  time.Time // when a session was last ended
}

// Observe handles the epoch in a message.
func (p *Pods) Observe(e Epoch, now time.Time) Pod {
	switch {
	case e.Known(now) == 0:
		return UnknownPod
	case e == p.latest:
		p.heard = now
		return LatestPod
	case e > p.latest || now.Sub(p.heard) >= PodSilence:
		p.latest, p.heard = e, now
		return NewPod
	}
	return EarlierPod
}

// Latest returns the epoch that counts, and zero if its pod is silent.
func (p *Pods) Latest(now time.Time) Epoch {
	if now.Sub(p.heard) >= PodSilence {
		return 0
	}
	return p.latest
}

// Is reports whether an epoch is that of the latest pod, silent or not.
func (p *Pods) Is(e Epoch) bool { return e == p.latest }

// End reports whether the session of an earlier pod may be ended now.
func (p *Pods) End(now time.Time) bool {
	if now.Sub(p.ended) < podEvery {
		return false
	}
	p.ended = now
	return true
}
