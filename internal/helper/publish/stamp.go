package publish

import "time"

// Now returns the current time for a report.
func Now() time.Time { return Stamp(time.Now()) }

// Stamp returns a time by the current clock, truncated for a report; the zero time stays zero. If the clock was set
// back since, an earlier time would otherwise be in the future, and a dead path healthy.
func Stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(-now.Sub(t)).UTC().Truncate(time.Millisecond) // Sub: monotonic; Add: wall clock
}
