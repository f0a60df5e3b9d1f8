package probe

import (
	"context"
	"fmt"
	"time"
)

// Interval of messages on an open connection, and the time without an answer after which it counts as broken.
const (
	holdEvery  = 100 * time.Millisecond
	holdBroken = 30 * time.Second
)

// hold keeps a connection open and counts how often it breaks. gap is the longest time between two answers. Time starts
// with the first connection: a new Service refuses connections until its node has programmed it.
func (t Target) hold(ctx context.Context, d time.Duration) (gap time.Duration, err error) {
	if _, err := t.askTCP(ctx); err != nil {
		return 0, err
	}
	begun := time.Now()
	answered := begun
	var broken int
	var first error
	for end := begun.Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		longest, err := t.holdOne(ctx, end, &answered)
		gap = max(gap, longest)
		if err != nil {
			if broken++; broken == 1 {
				first = fmt.Errorf("after %s: %w", time.Since(begun).Round(time.Second), err)
			}
		}
	}
	if broken > 0 {
		return gap, fmt.Errorf("broken %d times, first %w", broken, first)
	}
	return gap, nil
}

// holdOne exchanges messages on one connection until end, or until it breaks.
func (t Target) holdOne(ctx context.Context, end time.Time, answered *time.Time) (gap time.Duration, err error) {
	defer func() { gap = max(gap, time.Since(*answered)) }()
	opening, cancel := context.WithTimeout(ctx, holdBroken)
	defer cancel()
	conn, err := t.open(opening, "tcp4", nil)
	if err != nil {
		select { // it may be refused immediately
		case <-ctx.Done():
		case <-time.After(holdEvery):
		}
		return gap, err
	}
	defer conn.Close()
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	for time.Now().Before(end) {
		if err := conn.SetDeadline(time.Now().Add(holdBroken)); err != nil {
			return gap, err
		}
		if _, err := t.exchange(conn, pattern(small)); err != nil {
			return gap, err
		}
		now := time.Now()
		gap, *answered = max(gap, now.Sub(*answered)), now
		select {
		case <-ctx.Done():
			return gap, nil
		case <-tick.C:
		}
	}
	return gap, nil
}
