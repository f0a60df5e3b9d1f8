package e2e

import (
	"slices"
	"sync"
	"testing"
)

// labsAtOnce is how many labs run at a time: more of them exceed their timeouts on two cores.
const labsAtOnce = 2

// turns are the tests that wait for their turn to start a lab, and how many have one.
var turns struct {
	sync.Mutex
	waiting []turn
	running int
}

type turn struct {
	minutes int // that the lab takes, about
	begin   chan struct{}
}

// inTurn runs a test in parallel, at most labsAtOnce at a time, and those that take longest first.
func inTurn(t *testing.T, minutes int) {
	t.Helper()
	mine := turn{minutes, make(chan struct{})}
	turns.Lock()
	turns.waiting = append(turns.waiting, mine)
	turns.Unlock()
	t.Cleanup(func() { next(-1) })
	t.Parallel() // all turns are known when the first test continues
	next(0)
	<-mine.begin
}

// next begins waiting turns while there is room, after the number of running ones has changed.
func next(change int) {
	turns.Lock()
	defer turns.Unlock()
	turns.running += change
	slices.SortStableFunc(turns.waiting, func(x, y turn) int { return y.minutes - x.minutes })
	for ; turns.running < labsAtOnce && len(turns.waiting) > 0; turns.running++ {
		close(turns.waiting[0].begin)
		turns.waiting = turns.waiting[1:]
	}
}
