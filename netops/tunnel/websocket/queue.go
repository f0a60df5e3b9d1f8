package websocket

import (
	"sync"
	"time"
)

const (
	// oldest is how long a frame may wait. Beyond that, packets would only lengthen the delay of those behind them.
	oldest = 50 * time.Millisecond
	// queueMost is the number of frames that wait at most; beyond that, the oldest is dropped.
	queueMost = 1024
	// writeMost is the number of bytes that are written at once.
	writeMost = 48 << 10
)

// queue has the frames that wait to be written. It never blocks who adds to it.
type queue struct {
	masked bool
	ready  chan struct{} // of size one: there is something to write

	mu      sync.Mutex
	bytes   []byte
	entries []entry
	first   int // entries before it were dropped or taken
	control []byte
	dropped uint64
	mask    func() uint32
}

// entry is one frame in the queue.
type entry struct {
	at         time.Time
	begin, end int
}

func newQueue(masked bool, mask func() uint32) *queue {
	return &queue{masked: masked, mask: mask, ready: make(chan struct{}, 1)}
}

// add adds datagrams of one size; the last may be shorter.
func (q *queue) add(b []byte, size int, now time.Time) {
	q.mu.Lock()
	for len(b) > 0 {
		one := b[:min(size, len(b))]
		b = b[len(one):]
		if len(q.entries)-q.first >= queueMost {
			q.first++
			q.dropped++
		}
		q.compact()
		begin := len(q.bytes)
		q.bytes = appendFrame(q.bytes, opBinary, one, q.masked, q.mask())
		q.entries = append(q.entries, entry{now, begin, len(q.bytes)})
	}
	q.mu.Unlock()
	q.notify()
}

// compact removes the frames that were dropped or taken from memory, once they are most of it.
func (q *queue) compact() {
	if q.first < queueMost || q.first < len(q.entries)/2 {
		return
	}
	begin := len(q.bytes)
	if q.first < len(q.entries) {
		begin = q.entries[q.first].begin
	}
	q.bytes = q.bytes[:copy(q.bytes, q.bytes[begin:])]
	q.entries = q.entries[:copy(q.entries, q.entries[q.first:])]
	for i := range q.entries {
		q.entries[i].begin -= begin
		q.entries[i].end -= begin
	}
	q.first = 0
}

// addControl adds a control frame, which is written before all others. Those that wait are limited: a peer causes one
// with each ping.
func (q *queue) addControl(opcode byte, payload []byte) {
	q.mu.Lock()
	if len(q.control) < 16*maxControl {
		q.control = appendFrame(q.control, opcode, payload, q.masked, q.mask())
	}
	q.mu.Unlock()
	q.notify()
}

func (q *queue) notify() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take appends what is to be written next to b, and removes it. It drops frames that have waited too long.
func (q *queue) take(b []byte, now time.Time) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	b = append(b, q.control...)
	q.control = q.control[:0]
	for q.first < len(q.entries) && now.Sub(q.entries[q.first].at) > oldest {
		q.first++
		q.dropped++
	}
	begin := q.first
	for q.first < len(q.entries) && (q.first == begin || q.entries[q.first].end-q.entries[begin].begin <= writeMost) {
		q.first++
	}
	if q.first > begin {
		b = append(b, q.bytes[q.entries[begin].begin:q.entries[q.first-1].end]...)
	}
	if q.first == len(q.entries) {
		q.bytes, q.entries, q.first = q.bytes[:0], q.entries[:0], 0
	}
	return b
}
