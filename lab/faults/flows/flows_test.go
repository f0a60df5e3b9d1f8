package flows

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/require"
)

// echoes is a remote end that can lose packets and refuse connections.
type echoes struct {
	silent            atomic.Bool
	answered, dropped atomic.Int64  // datagrams
	streams           chan net.Conn // each that was accepted
}

// answer serves at an address of the loopback device until the test ends.
func answer(t *testing.T, host string) *echoes {
	t.Helper()
	e := &echoes{streams: make(chan net.Conn, 100)}
	udp, err := net.ListenPacket("udp4", net.JoinHostPort(host, echoPort))
	require.NoError(t, err)
	tcp, err := net.Listen("tcp4", net.JoinHostPort(host, echoPort))
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = udp.Close(), tcp.Close() })
	go func() {
		buf := make([]byte, 2*size)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			if e.silent.Load() {
				e.dropped.Add(1)
				continue
			}
			_, _ = udp.WriteTo(buf[:n], from)
			e.answered.Add(1)
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			e.streams <- conn
			go func() {
				if _, err := io.WriteString(conn, "somebody\n"); err == nil {
					_, _ = io.Copy(conn, conn)
				}
			}()
		}
	}()
	return e
}

func TestFlows(t *testing.T) {
	const host = "127.8.7.6"
	far := answer(t, host)
	m, err := Begin(t.Context(), []string{host}, 0)
	require.NoError(t, err)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	more := func(count *atomic.Int64) { // half a second, and longer while the machine is stalled
		for end := count.Load() + 50; count.Load() < end; {
			<-tick.C
		}
	}
	more(&far.answered)
	far.silent.Store(true)
	more(&far.dropped)
	far.silent.Store(false)
	for range 2 { // the first that were accepted are the streams
		_ = (<-far.streams).Close()
	}
	more(&far.answered)
	more(&far.answered)
	all := m.End()
	if len(all) != 1 {
		t.Fatalf("%d results, want 1", len(all))
	}
	r := all[0]
	if r.Lost == 0 || r.Lost == r.Sent || r.Gone != r.Lost || r.Without < 300*time.Millisecond || r.Without > time.Minute {
		t.Errorf("half a second of silence in one and a half: %+v", r)
	}
	lost := 0
	for _, l := range r.Losses {
		lost += l.Lost
	}
	if lost != r.Lost || r.Stalled <= 0 {
		t.Errorf("times of %d lost datagrams: %+v", lost, r)
	}
	if r.Broken != 2 || r.Tried < 3 || r.Failed != 0 || r.Pause <= 0 || r.To != host {
		t.Errorf("two streams closed, no connection refused: %+v", r)
	}
	if _, err := Begin(t.Context(), []string{"127.8.7.5"}, 0); err == nil {
		t.Error("a host without an echo is measured")
	}
	if _, err := Begin(t.Context(), nil, 0); err == nil {
		t.Error("no host is measured")
	}
}

// TestLaps: each lap has what happened in it, and all of them together what a measurement without laps has.
func TestLaps(t *testing.T) {
	const host = "127.8.7.4"
	far := answer(t, host)
	m, err := Begin(t.Context(), []string{host}, 1)
	require.NoError(t, err)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	from := 0
	// lap ends a lap that has all datagrams that were sent before its call.
	lap := func() (all Result) {
		for to := m.paths[0].datagrams.count(); from < to; <-tick.C {
			r := m.Lap()[0]
			from += r.Sent
			all.Lost, all.Broken, all.Tried = all.Lost+r.Lost, all.Broken+r.Broken, all.Tried+r.Tried
			all.Pause = max(all.Pause, r.Pause)
		}
		return all
	}
	for end := far.answered.Load() + 50; far.answered.Load() < end; {
		<-tick.C
	}
	if r := lap(); r.Lost != 0 || r.Broken != 0 || r.Tried == 0 || r.Pause <= 0 {
		t.Errorf("without a fault: %+v", r)
	}
	far.silent.Store(true)
	for far.dropped.Load() < 50 {
		<-tick.C
	}
	far.silent.Store(false)
	_ = (<-far.streams).Close()
	if r := lap(); r.Lost < 50 || r.Broken != 1 {
		t.Errorf("50 datagrams without answers and a stream that was closed: %+v", r)
	}
	if r := lap(); r.Broken != 0 {
		t.Errorf("the stream broke in the lap before: %+v", r)
	}
	if r := m.End()[0]; r.Sent == 0 || r.Broken != 0 {
		t.Errorf("the last lap: %+v", r)
	}
}
