package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
)

// untilEnd runs a server at a free address of the loopback device, for TCP and UDP, until the test ends.
func untilEnd(t *testing.T, serve func(context.Context, netip.AddrPort) error) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	at := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, at) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return at
}

// meter runs a meter until the test ends.
func meter(t *testing.T, token string) netip.AddrPort {
	t.Helper()
	return untilEnd(t, Meter{token}.Serve)
}

func TestMeasure(t *testing.T) {
	token := rand.Text()
	m := Measurement{Meter: meter(t, token), Token: token, Streams: 4, Each: 50 * time.Millisecond}
	text, err := m.Report(t.Context())
	if err != nil || len(text) > maxReport {
		t.Fatal(err, text)
	}
	got, err := DecodeMeasured(text)
	if err != nil || got.Failed != "" {
		t.Fatal(err, text)
	}
	if got.Stream < 1e6 || got.Streams < 1e6 || got.Connections < 1 || got.P50 <= 0 || got.P50 > got.P90 || got.P90 > got.P99 {
		t.Errorf("figures %+v", *got.Figures)
	}
}

// A client without the token gets no data, and a server without it is not accepted as a meter.
func TestMeterNeedsItsToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	at := meter(t, rand.Text())
	if err := retry(ctx, func(ctx context.Context) error {
		return Measurement{Meter: at, Token: rand.Text()}.connect(ctx, modeSink)
	}); err == nil {
		t.Error("another token is taken")
	}
	conn, err := net.Dial("tcp4", at.String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte(strings.Repeat("A", 4096)))
	require.NoError(t, err)
	if answer, _ := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("an unknown client got %q", answer)
	}
	text, err := Measurement{Meter: serve(t), Token: rand.Text(), Streams: 1, Each: time.Millisecond}.Report(ctx)
	if got, decoding := DecodeMeasured(text); err != nil || decoding != nil || got.Failed == "" {
		t.Errorf("another server is taken for a meter: %v, %v, %s", err, decoding, text)
	}
	text, err = Measurement{Meter: netip.MustParseAddrPort("127.0.0.1:1"), Token: rand.Text(), Streams: 1, Each: time.Millisecond}.Report(ctx)
	if got, decoding := DecodeMeasured(text); err != nil || decoding != nil || got.Failed == "" {
		t.Errorf("nobody answers, and yet: %v, %v, %s", err, decoding, text)
	}
	if err := (Meter{Token: ""}).Serve(ctx, at); !errors.Is(err, errRefused) {
		t.Errorf("a meter without a token: %v", err)
	}
}

// A meter sends no more than it receives, and receives no more than its budget.
func TestMeterIsNoAmplifier(t *testing.T) {
	token := rand.Text()
	for _, mode := range []byte{modeSink, modeEcho, modeClose, 'x'} {
		near, far := net.Pipe()
		var budget atomic.Int64
		budget.Store(10_000)
		ended := make(chan error, 1)
		go func() {
			defer far.Close()
			ended <- new(pendingConns).serve(far, token, func(conn net.Conn) error { return Meter{token}.answer(conn, &budget) })
		}()
		sent, received := tokenSize+1, make(chan int, 1)
		_, err := near.Write(append([]byte(token), mode))
		require.NoError(t, err)
		go func() {
			n, _ := io.Copy(io.Discard, near)
			received <- int(n)
		}()
		for sent < 100_000 {
			n, err := near.Write(make([]byte, 1000))
			if sent += n; err != nil {
				break
			}
			if mode == modeEcho && sent > 50_000 {
				near.Close()
				break
			}
		}
		if err := <-ended; err == nil && mode != modeClose && mode != 'x' {
			t.Errorf("mode %c ends without an error", mode)
		}
		near.Close()
		if got := <-received; got > sent || mode == modeSink && (sent > 12_000 || got != ackSize) {
			t.Errorf("mode %c: received %d bytes for %d", mode, got, sent)
		}
	}
}

// A meter closes connections that send nothing, and they delay others no longer than that.
func TestMeterClosesIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		begun := time.Now()
		if err := new(pendingConns).serve(far, rand.Text(), nil); err == nil || time.Since(begun) != tokenTimeout {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// job is what a child of TestMeasureAcross does at its end of the path: it runs the meter, or measures.
type job struct {
	Token string
	Meter bool
}

// across is the address of the meter of TestMeasureAcross.
var across = netip.MustParseAddrPort("192.0.2.2:6094")

func TestMain(m *testing.M) {
	process.Main(func(ctx context.Context, j job) error {
		if j.Meter {
			return Meter{j.Token}.Serve(ctx, across)
		}
		text, err := Measurement{Meter: across, Token: j.Token, Streams: 4, Each: 2 * time.Second}.Report(ctx)
		if err == nil {
			_, err = os.Stdout.WriteString(text)
		}
		return err
	})
	os.Exit(m.Run())
}

// TestMeasureAcross measures a link of 20 Mbit/s between two network namespaces.
func TestMeasureAcross(t *testing.T) {
	t.Parallel()
	near, far := netns.New(t), netns.New(t)
	near.IP("link add eth0 type veth peer name eth0 netns " + far.Path())
	for i, ns := range []netns.Namespace{near, far} {
		ns.IP(fmt.Sprintf("address add 192.0.2.%d/24 dev eth0", i+1))
		ns.IP("link set eth0 up")
	}
	near.Run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "20mbit", "burst", "20000", "latency", "50ms")
	token := rand.Text()
	process.Start(t, far, "meter", job{token, true})
	text, err := io.ReadAll(process.Start(t, near, "measurement", job{token, false}).Out)
	require.NoError(t, err)
	got, err := DecodeMeasured(string(text))
	require.NoError(t, err)
	if got.Figures == nil {
		t.Fatal(got.Failed)
	}
	t.Logf("%+v", *got.Figures)
	for _, rate := range []float64{got.Stream, got.Streams} {
		if rate < 5e6 || rate > 20.5e6 { // received data counts, not data in the sender's buffers
			t.Errorf("%.1f Mbit/s through a link of 20", rate/1e6)
		}
	}
}
