package cluster

import "sync"

// Bell has waits check again. The zero value is ready to use.
type Bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed by the next ring; nil: nobody waits
}

// Ring has every wait that was given the bell check again.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// next is closed by the next ring; without a bell it never is.
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
