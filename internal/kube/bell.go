package kube

import "sync"

// Bell makes waits check their condition again. The zero value is ready to use.
type Bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed by the next Ring; nil: no wait is pending
}

// Ring makes every wait that uses the bell check again.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// next returns a channel that the next Ring closes. For a nil bell it is never closed.
func (b *Bell) next() <-chan struct{} {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}
