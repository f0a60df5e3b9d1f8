package ui

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
)

func TestQuantities(t *testing.T) {
	got := []string{
		Seconds(340 * time.Millisecond), Seconds(125 * time.Second), Age(-1), Age(12400 * time.Millisecond), RoundTrip(-1),
		RoundTrip(1250 * time.Microsecond), Percent(0.5), ByteCount(1023), ByteCount(1536), ByteCount(3 << 30), OrDash(""),
		BitRate(999), BitRate(1.5e9),
	}
	want := []string{"0.3s", "2m5s", "-", "12s", "-", "1.2ms", "50%", "1023B", "1.5KiB", "3.0GiB", "-", "999.0bit/s", "1.5Gbit/s"}
	assert.Equal(t, "texts", want, got)
}
