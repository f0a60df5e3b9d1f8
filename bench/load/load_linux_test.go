package load

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// wire returns a direct path between two namespaces.
func wire(t *testing.T) Way {
	t.Helper()
	from, to := netns.New(t), netns.New(t)
	from.Link("eth0", to, "eth0", 0)
	from.IP("addr add 192.0.2.1/24 dev eth0")
	to.IP("addr add 192.0.2.2/24 dev eth0")
	return Way{From: from.Handle, To: to.Handle, Address: netip.MustParseAddr("192.0.2.2")}
}

// sample is short, but long enough for the tests of a busy machine to be scheduled.
const sample = 500 * time.Millisecond

// measure calls do until it returns no error, with twice the duration at each attempt: a busy machine may stop during a
// sample.
func measure(t *testing.T, do func(during time.Duration) error) {
	t.Helper()
	const attempts = 5
	during, err := sample, error(nil)
	for range attempts {
		if err = do(during); err == nil {
			return
		}
		during *= 2
	}
	t.Error(err)
}

func TestWire(t *testing.T) {
	w := wire(t)
	for _, streams := range []int{1, 3} {
		measure(t, func(during time.Duration) error {
			v, err := w.Streams(t.Context(), streams, during)
			if err != nil || v.PerSecond < 1 || v.Processor <= 0 {
				return fmt.Errorf("%d streams: %+v Mbit/s (%w), want more than 1, and some processor time", streams, v, err)
			}
			return nil
		})
	}
	measure(t, func(during time.Duration) error {
		v, err := w.Datagrams(t.Context(), during)
		if err != nil || v.PerSecond < 10 || v.Processor <= 0 || v.Processor > 10*time.Millisecond {
			return fmt.Errorf("%+v datagrams (%w), want more than ten a second, and some processor time", v, err)
		}
		return nil
	})
	measure(t, func(during time.Duration) error {
		times, err := w.RoundTrips(t.Context(), during)
		if err != nil || len(times) < 2 {
			return fmt.Errorf("%d round trips: %w", len(times), err)
		}
		for _, d := range times {
			if d <= 0 {
				t.Errorf("a round trip of %v", d)
			}
		}
		return nil
	})
}

// TestSlowWire limits the rate, and checks that only arrivals count.
func TestSlowWire(t *testing.T) {
	w := wire(t)
	if _, err := w.From.Run(t.Context(), "", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf",
		"rate", "8mbit", "burst", "4000", "latency", "50ms"); err != nil {
		t.Fatal(err)
	}
	// A receiver that was not scheduled finds its buffer full, which counts for this sample. Without the limit there
	// would be thousands.
	measure(t, func(during time.Duration) error {
		v, err := w.Streams(t.Context(), 1, during)
		if err != nil || v.PerSecond > 80 {
			return fmt.Errorf("%+v Mbit/s (%w), want some 8", v, err)
		}
		return nil
	})
}

func TestDeadWire(t *testing.T) {
	w := wire(t)
	if _, err := w.To.Run(t.Context(), "table ip wall { chain in { type filter hook input priority 0; drop; }; }", "nft", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sample)
	defer cancel()
	if v, err := w.Datagrams(ctx, sample); err == nil {
		t.Errorf("%v datagrams a second through a wall", v)
	}
	if times, err := w.RoundTrips(t.Context(), sample); err == nil {
		t.Errorf("round trips %v through a wall", times)
	}
	if v, err := w.Streams(ctx, 1, sample); err == nil {
		t.Errorf("%v bits a second through a wall", v)
	}
}
