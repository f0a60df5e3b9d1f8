package echo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// TestSearch finds all sizes of a path, with correct and wrong known sizes, in few rounds.
func TestSearch(t *testing.T) {
	for _, most := range []int{LeastPacket, 1450, 1500, 9000, 65535} {
		for _, known := range []int{0, LeastPacket, 577, 1400, 1499, most - 1, most, most + 1} {
			for path := LeastPacket; path <= most; path += 1 + most/700 {
				rounds, packets := 0, 0
				got, err := search(most, known, func(sizes []int) (int, error) {
					rounds++
					packets += len(sizes)
					return largestWithin(t, sizes, path), nil
				})
				if err != nil || got != path {
					t.Fatalf("of %d bytes at most, %d known: found %d (%v), want %d", most, known, got, err, path)
				}
				if rounds > 6 || (path == known || path == most) && rounds > 1 {
					t.Fatalf("of %d bytes at most, %d known: %d rounds for a path of %d", most, known, rounds, path)
				}
				if packets > 6*(searchFan+4) {
					t.Fatalf("%d packets for a path of %d bytes of %d", packets, path, most)
				}
			}
		}
	}
}

// largestWithin returns the largest size that fits the path. Sizes must be ascending.
func largestWithin(t *testing.T, sizes []int, path int) (largest int) {
	for i, size := range sizes {
		if i > 0 && size <= sizes[i-1] {
			t.Fatalf("asked for %v", sizes)
		}
		if size <= path {
			largest = size
		}
	}
	return largest
}

// TestSearchOutlastsLoss: the size is found although larger packets were lost once for another reason.
func TestSearchOutlastsLoss(t *testing.T) {
	rounds := 0
	got, err := search(1500, 0, func(sizes []int) (int, error) {
		rounds++
		if rounds == 1 {
			return LeastPacket, nil
		}
		return largestWithin(t, sizes, 1500), nil
	})
	if got != 1500 || err != nil {
		t.Errorf("found %d (%v), want 1500", got, err)
	}
}

func TestSearchOfSilence(t *testing.T) {
	if _, err := search(1500, 1400, func([]int) (int, error) { return 0, nil }); !errors.Is(err, ErrSilent) {
		t.Errorf("error %v, want silence", err)
	}
	broken := errors.New("broken")
	if _, err := search(1500, 0, func([]int) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the question", err)
	}
}

// TestLargestPacket measures paths whose hops drop packets that are too large, without ICMP errors.
func TestLargestPacket(t *testing.T) {
	for _, c := range []struct {
		path, known int
		delay, most time.Duration // of the wire, one way; maximum time of the measurement
	}{
		{path: 9000, delay: time.Millisecond, most: 2 * time.Millisecond},
		{path: 1500, known: 1500, delay: time.Millisecond, most: time.Second / 2},
		{path: 1460, delay: time.Millisecond, most: 2500 * time.Millisecond},
		{path: 1461, delay: 200 * time.Millisecond, most: 11 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d bytes, %s", c.path, c.delay), func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire) {
				w.delay, w.most = c.delay, c.path
				w.attach(t, gatewayAddr, &Responder{})
				s := w.attach(t, nodeAddr, nil)
				begin := time.Now()
				got, err := s.LargestPacket(t.Context(), SizeConfig{Target: gatewayAddr, Most: 9000, Known: c.known})
				if err != nil || got != c.path {
					t.Errorf("found %d (%v), want %d", got, err, c.path)
				}
				if took := time.Since(begin); took > c.most {
					t.Errorf("took %s, want %s at most", took, c.most)
				}
				if len(s.sizers) != 0 {
					t.Errorf("%d sessions are left", len(s.sizers))
				}
			})
		})
	}
}

// TestLargestPacketWaitsForTheFirstAnswer: the target starts to answer after a while.
func TestLargestPacketWaitsForTheFirstAnswer(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		begin := time.Now()
		w.attach(t, gatewayAddr, &Responder{Accepts: func(netip.AddrPort, Message) bool { return time.Since(begin) > time.Second }})
		s := w.attach(t, nodeAddr, nil)
		got, err := s.LargestPacket(t.Context(), SizeConfig{Target: gatewayAddr, Most: 1500})
		took := time.Since(begin)
		if err != nil || got != 1500 || took < time.Second || took > 1200*time.Millisecond {
			t.Errorf("found %d (%v) after %s, want 1500 soon after the first answer", got, err, took)
		}
	})
}

// TestLargestPacketWithoutReplies ends with ErrSilent, and with its context.
func TestLargestPacketWithoutReplies(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		s := w.attach(t, nodeAddr, nil)
		cfg := SizeConfig{Target: gatewayAddr, Most: 1500}
		if _, err := s.LargestPacket(t.Context(), cfg); !errors.Is(err, ErrSilent) {
			t.Errorf("error %v, want silence", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.LargestPacket(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

func TestLargestPacketRefuses(t *testing.T) {
	s := newWire().attach(t, nodeAddr, nil)
	for _, cfg := range []SizeConfig{
		{Most: 1500}, {Target: gatewayAddr}, {Target: gatewayAddr, Most: LeastPacket - 1}, {Target: gatewayAddr, Most: 65536},
	} {
		if _, err := s.LargestPacket(t.Context(), cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// TestForgedSizes: forged replies of another host or of the target itself do not increase the measured size.
func TestForgedSizes(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.delay, w.most = time.Millisecond, 1400
		s := w.attach(t, nodeAddr, nil)
		forge := func(from netip.AddrPort, request Message, change func(*Message)) {
			request.Kind = Reply
			change(&request)
			b, err := request.AppendTo(nil)
			require.NoError(t, err)
			w.ends[nodeAddr].in <- packet{b, from}
		}
		w.attach(t, gatewayAddr, &Responder{Answer: func(_ netip.AddrPort, m Message) Content {
			whole := 1500 - packetHeaders
			forge(otherAddr, m, func(m *Message) { m.Size, m.Sequence = whole, 1 })
			// Longer than its request.
			forge(gatewayAddr, m, func(m *Message) { m.Size = whole })
			// Shorter than its request.
			forge(gatewayAddr, m, func(m *Message) { m.Sequence = 1 })
			forge(gatewayAddr, m, func(m *Message) { m.Sequence = 1 << 31 })                     // of no request
			forge(gatewayAddr, m, func(m *Message) { m.Size, m.Sequence, m.Sent = whole, 1, 0 }) // of another time
			// Of another session.
			forge(gatewayAddr, m, func(m *Message) { m.Size, m.Sequence, m.Session = whole, 1, 1 })
			return Content{}
		}})
		got, err := s.LargestPacket(t.Context(), SizeConfig{Target: gatewayAddr, Most: 1500})
		if err != nil || got != 1400 {
			t.Errorf("found %d (%v), want 1400", got, err)
		}
	})
}
