package echo

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

const testMTU = 1400

// answerTimeout is the maximum time of the first answer on a busy machine.
const answerTimeout = time.Minute

var (
	local  = netip.MustParseAddrPort("127.0.0.1:6092")
	remote = netip.MustParseAddrPort("127.0.0.2:6092")
)

// newLoopback returns a namespace with a link lo of that MTU only.
func newLoopback(t testing.TB) netns.Namespace {
	t.Helper()
	ns := netns.New(t)
	ns.IP(fmt.Sprintf("link set lo mtu %d", testMTU))
	return ns
}

func listen(t testing.TB, ns netns.Namespace, cfg Config) (s *Socket) {
	t.Helper()
	ns.Inside(func() (err error) {
		s, err = Listen(cfg)
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// firstResult starts a prober and waits for its first answer or loss.
func firstResult(t *testing.T, s *Socket, cfg ProbeConfig) (*Prober, bool) {
	t.Helper()
	result := make(chan bool, 1)
	report := func(answered bool) {
		select {
		case result <- answered:
		default:
		}
	}
	cfg.Interval = 20 * time.Millisecond
	cfg.OnReply = func(Message, time.Duration) { report(true) }
	cfg.OnLost = func(int) { report(false) }
	p := probe(t, s, cfg)
	t.Cleanup(p.Stop)
	select {
	case answered := <-result:
		return p, answered
	case <-time.After(2 * answerTimeout):
		t.Fatalf("neither answer nor loss: %+v", p.Stats())
		return nil, false
	}
}

func TestFullSizeOverUDP(t *testing.T) {
	ns := newLoopback(t)
	listen(t, ns, Config{Local: remote, Responder: &Responder{}})
	s := listen(t, ns, Config{Local: local})
	const full = testMTU - 20 - 8
	p, answered := firstResult(t, s, ProbeConfig{Target: remote, Size: full, Timeout: answerTimeout})
	if stats := p.Stats(); !answered || stats.RTT <= 0 || stats.LastError != nil {
		t.Errorf("request as large as the MTU: %+v", stats)
	}
	p, answered = firstResult(t, s, ProbeConfig{Target: remote, Size: full + 1})
	if stats := p.Stats(); answered || !errors.Is(stats.LastError, syscall.EMSGSIZE) || stats.Loss != 1 {
		t.Errorf("request larger than the MTU: answered %v, %+v", answered, stats)
	}
}

func TestUnreachableTargetIsLoss(t *testing.T) {
	ns := newLoopback(t)
	s := listen(t, ns, Config{Local: local})
	p, answered := firstResult(t, s, ProbeConfig{Target: netip.MustParseAddrPort("192.0.2.1:6092")})
	if stats := p.Stats(); answered || stats.LastError == nil || stats.Lost == 0 {
		t.Errorf("answered %v, %+v", answered, stats)
	}
	_, answered = firstResult(t, s, ProbeConfig{Target: remote, Timeout: 50 * time.Millisecond})
	if answered {
		t.Error("answered without a responder")
	}
}

func TestListenRefusesWhatIsNoAddress(t *testing.T) {
	for _, local := range []string{"0.0.0.0:6092", "[::1]:6092"} {
		if s, err := Listen(Config{Local: netip.MustParseAddrPort(local)}); err == nil {
			t.Errorf("listens on %s", local)
			_ = s.Close()
		}
	}
}

// BenchmarkProbe measures the CPU time of a request and its reply, with both ends in this process, at the rate of one
// prober. Each wakes idle threads.
func BenchmarkProbe(b *testing.B) {
	ns := newLoopback(b)
	listen(b, ns, Config{Local: remote, Responder: &Responder{}})
	s := listen(b, ns, Config{Local: local})
	done, answers := make(chan struct{}), 0
	begin := cpuTime(b)
	p, err := s.Probe(ProbeConfig{
		Target: remote, Interval: minInterval, Size: 1200,
		OnReply: func(Message, time.Duration) {
			if answers++; answers == b.N {
				close(done)
			}
		},
	})
	require.NoError(b, err)
	<-done
	p.Stop()
	b.ReportMetric(float64((cpuTime(b)-begin).Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
