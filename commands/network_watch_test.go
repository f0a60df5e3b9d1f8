package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
)

// reported is a peering whose gateway has just reported what it counted.
func reported(state health.State, age time.Duration, rx, tx int64, rtt time.Duration) status.Peering {
	p := peerings()[0]
	p.Cluster, p.State, p.RTT, p.Warnings = "a", state, rtt, nil
	if state != health.Healthy {
		p.Reason, p.NodesReady = "no echo between gateway and node n1", 1
	}
	p.Gateways = []status.Gateway{{Number: 1, State: state, ReportAge: &age, Tunnels: []status.Tunnel{{Gateway: 1, RxBytes: rx, TxBytes: tx}}}}
	return p
}

// watched is a view of five minutes, in which traffic grows, a report is read twice, a gateway begins anew, and a node is lost.
func watched(coloured bool) (*live, time.Time) {
	v := &live{o: statusOptions{coloured: coloured}, tracks: make(map[string]*track)}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	show := func(p status.Peering) { v.update(now, statusAnswer{Peerings: []status.Peering{p, peerings()[1]}}) }
	for i := range int64(20) {
		for _, age := range []time.Duration{0, 5 * time.Second} {
			rx := i * i * 1_000_000
			if i == 19 {
				rx = 0
			}
			show(reported(health.Healthy, age, rx, i*100_000, time.Duration(600+20*i)*time.Microsecond))
			now = now.Add(5 * time.Second)
		}
	}
	show(reported(health.Degraded, 0, 10_000_000, 2_000_000, time.Millisecond))
	v.note(now.Add(time.Second), "connection refused\x1b[2J")
	return v, now.Add(2 * time.Second)
}

func frameOf(v *live, now time.Time, columns, rows int) string {
	return v.frame(now, func() (int, int) { return columns, rows })
}

func TestLiveView(t *testing.T) {
	for _, size := range [][2]int{{120, 30}, {80, 24}, {40, 24}, {20, 8}} {
		v, now := watched(false)
		text := frameOf(v, now, size[0], size[1])
		golden(t, fmt.Sprintf("watch-%d", size[0]), strings.ReplaceAll(text, clearLine, ""))
		lines := strings.Split(strings.TrimSuffix(text, "\n"+clearBelow), "\n")
		if len(lines) >= size[1] {
			t.Errorf("%d lines on a terminal of %d", len(lines), size[1])
		}
		for _, line := range lines {
			if wide := utf8.RuneCountInString(strings.TrimPrefix(line, clearLine)); wide > size[0] {
				t.Errorf("a line of %d characters on a terminal of %d: %q", wide, size[0], line)
			}
		}
	}
	v, now := watched(true)
	plain, _ := watched(false)
	coloured := frameOf(v, now, 80, 24)
	if !strings.Contains(coloured, stateColour("degraded")) {
		t.Errorf("no colour in\n%q", coloured)
	}
	for _, code := range []string{"\x1b[33m", "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, code, "")
	}
	if want := frameOf(plain, now, 80, 24); coloured != want {
		t.Errorf("colours move columns:\n%s\nwant\n%s", coloured, want)
	}
}

// Traffic is what was counted between two reports, and not known where a gateway has begun anew or is silent.
func TestTraffic(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	v := &track{gateways: make(map[int]counted)}
	for i, c := range []struct {
		age    time.Duration
		rx, tx int64
		want   float64
	}{
		{0, 1000, 0, noSample}, {0, 101_000, 0, 10_000}, {10 * time.Second, 101_000, 0, 10_000}, {0, 301_000, 0, 10_000},
		{0, 500, 0, noSample}, {0, 10_500, 0, 1000}, {time.Minute, 10_500, 0, noSample},
	} {
		v.sample(now, reported(health.Healthy, c.age, c.rx, c.tx, 0))
		if got := v.received[len(v.received)-1]; got != c.want {
			t.Errorf("report %d: %v bytes a second, want %v", i, got, c.want)
		}
		now = now.Add(10 * time.Second)
	}
	for range 10 * mostSamples {
		v.sample(now, reported(health.Healthy, 0, 0, 0, 0))
		now = now.Add(sampleEvery)
	}
	if len(v.rtt) != mostSamples || cap(v.rtt) > 4*mostSamples {
		t.Errorf("%d samples are kept, room for %d", len(v.rtt), cap(v.rtt))
	}
}

// screen runs `network status --watch` on a terminal, until all has been shown for two seconds.
func screen(t *testing.T, fails error, env ...string) (out string, err error) {
	t.Helper()
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		err = parse(t, func(made *Env, local *clusterFlags) *cobra.Command {
			made.Out, made.OutTerminal, made.Environ = &b, true, env
			made.Size = func() (int, int) { return 80, 24 }
			made.progress = newProgress(t.Output(), false, false)
			return newNetworkStatus(made, local, statusActions{
				watch: func(_ context.Context, _ status.Options, show func([]status.Peering) error, lost func(error)) error {
					err := show(peerings())
					lost(errors.New("connection refused"))
					<-time.After(2*time.Second + time.Millisecond)
					return errors.Join(err, fails)
				},
			})
		}, "--watch")
	})
	return b.String(), err
}

// However it ends, the terminal is as it was, and the last view stays.
func TestLiveViewRestoresTheTerminal(t *testing.T) {
	for _, fails := range []error{nil, errAsked} {
		out, err := screen(t, fails)
		if fails == nil && !errors.Is(err, errInterrupted) || fails != nil && !errors.Is(err, fails) {
			t.Errorf("error %v", err)
		}
		inside, last, ended := strings.Cut(strings.TrimPrefix(out, enterScreen), leaveScreen)
		if !strings.HasPrefix(out, enterScreen) || !ended || strings.Count(out, leaveScreen) != 1 {
			t.Fatalf("%q", out)
		}
		if got := strings.Count(inside, toTop); got != 3 {
			t.Errorf("%d views in two seconds", got)
		}
		if !strings.Contains(last, "b     ") || !strings.Contains(last, "connection refused") || strings.Contains(last, toTop) {
			t.Errorf("left on the terminal: %q", last)
		}
	}
}

// A terminal without control sequences gets lines; one without colours gets the view.
func TestTerminalsWithoutView(t *testing.T) {
	if out, _ := screen(t, nil, "TERM=dumb"); strings.Contains(out, "\x1b") || !strings.Contains(out, "PEER") {
		t.Errorf("%q", out)
	}
	out, _ := screen(t, nil, "NO_COLOR=1")
	if !strings.Contains(out, enterScreen) || strings.Contains(out, "\x1b[3") {
		t.Errorf("%q", out)
	}
}
