package membership

import (
	"testing"
	"time"
)

// try makes one try at a time, in which the first answers are given, and reports whether UDP has the packets back.
func try(t *testing.T, c *Carrying, now time.Time, answers int) bool {
	t.Helper()
	if !c.Try(now) {
		t.Fatal("no try is due")
	}
	if c.Try(now) {
		t.Error("two tries at once")
	}
	for range answers {
		if c.Answered(now) {
			return true
		}
	}
	if !c.Lost(now) {
		t.Error("the try goes on after a loss")
	}
	return false
}

// pause returns the time until the next try.
func pause(c *Carrying, now time.Time) time.Duration {
	for d := time.Duration(0); d < time.Hour; d += time.Second / 4 {
		probe := *c
		if probe.Try(now.Add(d)) {
			return d
		}
	}
	return -1
}

// TestCarrying: UDP is tried at once, then at growing intervals, and has the packets back after answers without a loss.
func TestCarrying(t *testing.T) {
	now := time.Now()
	var c Carrying
	if on, _ := c.On(); on || c.Try(now) || c.Answered(now) || c.Lost(now) {
		t.Error("UDP is tried that carries the packets")
	}
	c.Begin(now)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		try(t, &c, now, TryAnswers-1)
		if got := pause(&c, now); got != want*time.Second {
			t.Errorf("next try after %s, want %d s", got, want)
		}
		now = now.Add(want * time.Second)
		c.Begin(now) // once more changes nothing
	}
	if !try(t, &c, now, TryAnswers) {
		t.Error("UDP does not get the packets back")
	}
	if on, since := c.On(); on || since != now {
		t.Errorf("on: %t since %s", on, since)
	}
	c.Begin(now.Add(Relapse))
	if c.End(); c.Try(now.Add(2 * Relapse)) {
		t.Error("UDP is tried that has the packets back")
	}
	if c.Begin(now.Add(2 * Relapse)); pause(&c, now.Add(2*Relapse)) != 0 {
		t.Error("the end of the other transport counts as a relapse")
	}
}

// TestRelapses: UDP that is silent soon after each return is tried less and less often, up to every ten minutes.
func TestRelapses(t *testing.T) {
	now := time.Now()
	var c Carrying
	c.Begin(now)
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		try(t, &c, now, TryAnswers)
		now = now.Add(Relapse - time.Second)
		c.Begin(now)
		if got := pause(&c, now); got != want*time.Minute {
			t.Errorf("first try after %s, want %d min", got, want)
		}
		now = now.Add(want * time.Minute)
		try(t, &c, now, 0)
		if got := pause(&c, now); got != want*time.Minute {
			t.Errorf("second try after %s, want %d min", got, want)
		}
		now = now.Add(want * time.Minute)
	}
	try(t, &c, now, TryAnswers)
	now = now.Add(Relapse)
	c.Begin(now)
	if got := pause(&c, now); got != 0 {
		t.Errorf("after a lasting return: first try after %s", got)
	}
}
