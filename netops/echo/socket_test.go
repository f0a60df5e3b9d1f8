package echo

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

func TestProbeMeasuresAndReports(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.delay = 3 * time.Millisecond
		report := Report{Node: 7, OverlayRTT: time.Millisecond}
		var asked []Message
		w.attach(t, gatewayAddr, &Responder{Answer: func(from netip.AddrPort, request Message) Content {
			if from != nodeAddr {
				t.Errorf("request from %v", from)
			}
			asked = append(asked, request)
			return Content{Node: 9}
		}})
		var replies []Message
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 200 * time.Millisecond, Size: 1400,
			Content: func() Content { return Content{Report: report} },
			OnReply: func(reply Message, rtt time.Duration) {
				replies = append(replies, reply)
				if rtt != 6*time.Millisecond {
					t.Errorf("round trip %v", rtt)
				}
			},
			OnLost: func(int) { t.Error("lost a request") },
		})
		after(950 * time.Millisecond)
		if len(asked) != 5 || asked[4].Content.Report != report || asked[4].Size != 1400 {
			t.Errorf("gateway got %d requests, the last %+v", len(asked), asked[len(asked)-1])
		}
		if len(replies) != 5 || replies[4].Content.Node != 9 || replies[4].Size != 1400 {
			t.Errorf("node got %d replies, the last %+v", len(replies), replies[len(replies)-1])
		}
		got := p.Stats()
		want := ProbeStats{Sent: 5, Received: 5, RTT: 6 * time.Millisecond, LastReply: got.LastReply}
		if got != want || time.Since(got.LastReply) != 144*time.Millisecond {
			t.Errorf("stats %+v, last reply %v ago", got, time.Since(got.LastReply))
		}
	})
}

func TestLossIsReportedUntilAnAnswer(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		var losses []int
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 100 * time.Millisecond, Timeout: 250 * time.Millisecond, Window: 8,
			OnLost: func(n int) { losses = append(losses, n) },
		})
		after(350 * time.Millisecond) // four requests answered
		w.setDrop(func(from, _ netip.AddrPort) bool { return from == gatewayAddr })
		after(500 * time.Millisecond) // of five requests three are given up
		if stats := p.Stats(); !slices.Equal(losses, []int{1, 2, 3}) || stats.Lost != 3 || stats.Loss != 3.0/7 {
			t.Errorf("losses %v, stats %+v", losses, stats)
		}
		w.setDrop(nil)
		after(100 * time.Millisecond)
		if stats := p.Stats(); stats.Lost != 0 {
			t.Errorf("after an answer: stats %+v", stats)
		}
		after(2 * time.Second)
		if stats := p.Stats(); stats.Loss != 0 || stats.Sent != 30 || stats.Received != 25 {
			t.Errorf("a window later: stats %+v", stats)
		}
	})
}

// TestLossBeginsWithTheFirstAnswer: requests before the first reply do not count as lost.
func TestLossBeginsWithTheFirstAnswer(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		w.attach(t, otherAddr, &Responder{})
		answers := func(yes bool) {
			w.setDrop(func(netip.AddrPort, netip.AddrPort) bool { return !yes })
		}
		answers(false)
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 100 * time.Millisecond, Timeout: 250 * time.Millisecond, Window: 16,
		})
		expect := func(when string, loss float64) {
			t.Helper()
			if stats := p.Stats(); stats.Loss != loss {
				t.Errorf("%s: loss %v, want %v", when, stats.Loss, loss)
			}
		}
		after(450 * time.Millisecond) // five requests: two are given up, three are outstanding
		expect("before there is a path", 1)
		answers(true)
		after(100 * time.Millisecond)
		expect("at the first answer", 0)
		after(200 * time.Millisecond) // the earlier requests would be given up now
		expect("after three answers", 0)
		answers(false)
		after(350 * time.Millisecond) // one of the four is given up
		expect("one of four lost", 0.25)

		require.NoError(t, p.SetTarget(otherAddr))
		after(300 * time.Millisecond)
		expect("another target, no path yet", 1)
		answers(true)
		after(100 * time.Millisecond)
		expect("first answer of the other target", 0)
	})
}

func TestRequestIsGivenUpInTimeBetweenSlowProbes(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, nil)
		begin := time.Now()
		var reported time.Duration
		probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: time.Minute, OnLost: func(int) { reported = time.Since(begin) },
		})
		after(10 * time.Second)
		if reported != DefaultTimeout {
			t.Errorf("loss reported after %v, want %v", reported, DefaultTimeout)
		}
	})
}

func TestSendErrorIsALossAtOnce(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		var losses []int
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: time.Second, OnLost: func(n int) { losses = append(losses, n) },
		})
		after(1500 * time.Millisecond)
		if stats := p.Stats(); !errors.Is(stats.LastError, errNetUnreachable) || stats.Loss != 1 || !slices.Equal(losses, []int{1, 2}) {
			t.Errorf("losses %v, stats %+v", losses, stats)
		}
		w.attach(t, gatewayAddr, &Responder{})
		after(time.Second)
		if stats := p.Stats(); stats.LastError != nil || stats.Lost != 0 {
			t.Errorf("after an answer: stats %+v", stats)
		}
	})
}

func TestSetTargetBeginsAnew(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.delay = 20 * time.Millisecond
		w.attach(t, gatewayAddr, &Responder{})
		var asked int
		w.attach(t, otherAddr, &Responder{Answer: func(netip.AddrPort, Message) Content { asked++; return Content{} }})
		s := w.attach(t, nodeAddr, nil)
		p := probe(t, s, ProbeConfig{Target: gatewayAddr, Interval: 10 * time.Second})
		after(30 * time.Millisecond) // the reply is on its way
		require.NoError(t, p.SetTarget(otherAddr))
		after(30 * time.Millisecond)
		if asked != 1 || !p.Stats().LastReply.IsZero() {
			t.Errorf("new target asked %d times at once; stats %+v", asked, p.Stats())
		}
		if n := s.Ignored()[ReasonSession]; n != 1 {
			t.Errorf("answers of the old target ignored: %d", n)
		}
		after(20 * time.Millisecond)
		if stats := p.Stats(); stats.Received != 1 || stats.Sent != 2 || stats.RTT != 40*time.Millisecond {
			t.Errorf("stats %+v", stats)
		}
		if err := p.SetTarget(netip.AddrPort{}); err == nil {
			t.Error("took a target without an address")
		}
	})
}

// TestSlowPath: slow packets are not lost, and packets that are lost on a slow path are.
func TestSlowPath(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 20 * time.Millisecond, Calm: time.Second, Train: 5, Timeout: 600 * time.Millisecond, Window: 500, Span: 10 * time.Second,
		})
		after(10 * time.Second)
		w.mu.Lock()
		w.delay = 750 * time.Millisecond
		w.mu.Unlock()
		after(4 * time.Second) // the first slow replies are late
		for range 100 {
			after(100 * time.Millisecond)
			if stats := p.Stats(); stats.Loss != 0 || stats.Lost != 0 {
				t.Fatalf("stats %+v", stats)
			}
		}
		w.setDrop(func(from, _ netip.AddrPort) bool { return from == gatewayAddr })
		after(5 * time.Second)
		if stats := p.Stats(); stats.Lost == 0 || stats.Loss == 0 || time.Since(stats.LastReply) < 3*time.Second {
			t.Errorf("nothing is answered: stats %+v", stats)
		}
	})
}

// TestTimeout: the timeout is never shorter than configured, and limited, so that silence is detected in time.
func TestTimeout(t *testing.T) {
	const least = 600 * time.Millisecond
	for _, c := range []struct {
		trips []time.Duration
		want  time.Duration
	}{
		{nil, least},
		{[]time.Duration{time.Millisecond, 2 * time.Millisecond}, least},
		{[]time.Duration{time.Second}, 2400 * time.Millisecond},
		{slices.Repeat([]time.Duration{time.Second}, 50), 1300 * time.Millisecond},
		{slices.Repeat([]time.Duration{time.Minute}, 50), 2400 * time.Millisecond},
	} {
		var r roundTrips
		for _, rtt := range c.trips {
			r.add(rtt)
		}
		if got := r.timeout(least).Round(time.Millisecond); got != c.want {
			t.Errorf("after %d round trips: %v, want %v", len(c.trips), got, c.want)
		}
	}
	if got := longestTimeout(time.Minute); got != time.Minute {
		t.Errorf("longest timeout %v of a minute", got)
	}
}

func TestForgedRepliesAreIgnored(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		var seen Message
		w.attach(t, gatewayAddr, &Responder{Answer: func(_ netip.AddrPort, m Message) Content { seen = m; return Content{} }})
		s := w.attach(t, nodeAddr, nil)
		p := probe(t, s, ProbeConfig{
			Target: gatewayAddr, Interval: time.Hour,
			OnReply: func(m Message, _ time.Duration) {
				if m.Content.Node != 0 {
					t.Errorf("took a forged reply %+v", m)
				}
			},
		})
		after(0)
		forge := func(from netip.AddrPort, change func(*Message)) {
			m := seen
			m.Kind, m.Content.Node = Reply, 9
			change(&m)
			b, err := m.AppendTo(nil)
			require.NoError(t, err)
			w.ends[nodeAddr].in <- packet{b, from}
		}
		forge(gatewayAddr, func(*Message) {})
		forge(otherAddr, func(*Message) {})
		forge(gatewayAddr, func(m *Message) { m.Session++ })
		forge(gatewayAddr, func(m *Message) { m.Sequence++ })
		w.ends[nodeAddr].in <- packet{[]byte("noise"), gatewayAddr}
		after(0)
		got := s.Ignored()
		for reason, want := range map[Reason]uint64{
			ReasonSource: 1, ReasonSession: 1, ReasonSequence: 2, ErrShort: 1,
		} {
			if got[reason] != want {
				t.Errorf("ignored for %q: %d, want %d", reason, got[reason], want)
			}
		}
		if p.Stats().Received != 1 {
			t.Errorf("stats %+v", p.Stats())
		}
	})
}

func TestRepliesAreLimitedAndNeverAnswered(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, nodeAddr, nil)
		s := w.attach(t, gatewayAddr, &Responder{Rate: 10, Burst: 5})
		for _, kind := range []Kind{Request, Reply} {
			b, _ := Message{Kind: kind, Size: 100}.AppendTo(nil)
			for range 20 {
				w.ends[gatewayAddr].in <- packet{b, nodeAddr}
			}
		}
		after(0)
		if c := s.Ignored(); c[ReasonRateLimit] != 15 || c[ReasonSession] != 20 {
			t.Errorf("ignored %v", c)
		}
		if len(w.sends) != 5 {
			t.Errorf("%d packets were sent", len(w.sends))
		}
	})
}

func TestManyProbersShareASocket(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.delay = time.Millisecond
		s := w.attach(t, nodeAddr, nil)
		probers := make([]*Prober, 0, 500)
		for i := range cap(probers) {
			target := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 80, byte(1 + i/250), byte(i % 250)}), 6092)
			w.attach(t, target, &Responder{})
			probers = append(probers, probe(t, s, ProbeConfig{Target: target, Interval: 200 * time.Millisecond}))
		}
		after(900 * time.Millisecond)
		for _, p := range probers[:250] {
			p.Stop()
			p.Stop()
		}
		after(time.Second)
		for i, p := range probers {
			want := uint64(10)
			if i < 250 {
				want = 5
			}
			if stats := p.Stats(); stats.Sent != want || stats.Received != want {
				t.Fatalf("prober %d: stats %+v", i, stats)
			}
		}
	})
}

func TestCallbacksMayUseTheSocket(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, otherAddr, &Responder{})
		s := w.attach(t, nodeAddr, nil)
		var own atomic.Pointer[Prober]
		p := probe(t, s, ProbeConfig{
			Target: gatewayAddr, Interval: time.Second,
			OnLost: func(int) {
				if p := own.Load(); p != nil {
					_ = p.SetTarget(otherAddr)
				}
			},
			OnReply: func(Message, time.Duration) { own.Load().Stop() },
		})
		own.Store(p)
		after(10 * time.Second)
		if stats := p.Stats(); stats.Received != 1 || stats.Lost != 0 {
			t.Errorf("stats %+v", stats)
		}
		sent := p.Stats().Sent
		after(10 * time.Second)
		if got := p.Stats().Sent; got != sent {
			t.Errorf("sent %d requests after Stop", got-sent)
		}
	})
}

func TestProbeRefusesConfigurations(t *testing.T) {
	s := newWire().attach(t, nodeAddr, nil)
	good := ProbeConfig{Target: gatewayAddr, Interval: time.Second}
	for name, change := range map[string]func(*ProbeConfig){
		"no target":   func(c *ProbeConfig) { c.Target = netip.AddrPort{} },
		"IPv6 target": func(c *ProbeConfig) { c.Target = netip.MustParseAddrPort("[fd00::1]:6092") },
		"no interval": func(c *ProbeConfig) { c.Interval = 0 },
		"too large":   func(c *ProbeConfig) { c.Size = MaxSize + 1 },
		"too small":   func(c *ProbeConfig) { c.Size = 1 },
		"no time":     func(c *ProbeConfig) { c.Timeout = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := s.Probe(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
