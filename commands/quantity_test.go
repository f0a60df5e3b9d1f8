package commands

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQuantities(t *testing.T) {
	got := []string{
		seconds(340 * time.Millisecond), seconds(125 * time.Second), age(-1), age(12400 * time.Millisecond), roundTrip(-1),
		roundTrip(1250 * time.Microsecond), percent(0.5), byteCount(1023), byteCount(1536), byteCount(3 << 30), orDash(""),
		bitRate(999), bitRate(1.5e9),
	}
	want := []string{"0.3s", "2m5s", "-", "12s", "-", "1.2ms", "50%", "1023B", "1.5KiB", "3.0GiB", "-", "999.0bit/s", "1.5Gbit/s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
