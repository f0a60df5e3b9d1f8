package publish

import (
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got := Stamp(time.Time{}); !got.IsZero() {
		t.Errorf("no time became %s", got)
	}
	local := noon.Add(1234567 * time.Nanosecond).In(time.FixedZone("", 3600))
	if got := Stamp(local); got.Location() != time.UTC || !got.Equal(noon.Add(time.Millisecond)) {
		t.Errorf("%s became %s", local, got)
	}
}
