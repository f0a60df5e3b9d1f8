package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
)

// Control sequences of terminals (ECMA-48, and xterm's private modes): another screen without a cursor, and back; a line's and the screen's rest.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

const (
	redrawEvery = time.Second     // which also follows changes of the terminal's size
	sampleEvery = 5 * time.Second // a character of a sparkline; gateways report their counters every ten seconds
	mostSamples = 60
	mostChanges = 100
	noSample    = -1
)

// track is what a live view remembers of one side of a peering.
type track struct {
	gateways            map[int]counted
	rtt, received, sent []float64 // a sample for each time, the newest last; noSample: not known
	sampled             time.Time
	was                 status.Peering
}

// counted is what a gateway had counted when it reported, and how much that was in a second since the report before.
type counted struct {
	at             time.Time
	rx, tx         int64
	received, sent float64
}

// live is the view of `network status --watch` on a terminal.
type live struct {
	o       statusOptions
	mu      sync.Mutex
	answer  *statusAnswer // nil: none yet
	tracks  map[string]*track
	changes []string
}

// followLive shows the view until a signal ends it, and then leaves the last one.
func (o statusOptions) followLive(ctx context.Context, env *Env, do statusActions) error {
	v := &live{o: o, tracks: make(map[string]*track)}
	env.progress.stop()
	_, _ = io.WriteString(env.Out, enterScreen) // a terminal that is gone ends the command
	var group sync.WaitGroup
	inner, cancel := context.WithCancel(ctx)
	group.Go(func() {
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for inner.Err() == nil {
			_, _ = io.WriteString(env.Out, toTop+v.frame(time.Now(), env.size))
			select {
			case <-inner.Done():
			case <-tick.C:
			}
		}
	})
	err := do.watch(ctx, o.Options, func(all []status.Peering) error {
		v.update(time.Now(), o.answer(all))
		return nil
	}, func(err error) { v.note(time.Now(), withoutRequests(err).Error()) })
	cancel()
	group.Wait()
	columns, _ := env.size()
	_, _ = io.WriteString(env.Out, leaveScreen+v.frame(time.Now(), func() (int, int) { return columns, 1 << 16 }))
	if err == nil {
		err = errInterrupted
	}
	return err
}

// size is that of the terminal, by now.
func (e *Env) size() (columns, rows int) {
	if e.Size != nil {
		if columns, rows = e.Size(); columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return defaultColumns, 24
}

// note adds a line to the changes.
func (v *live) note(now time.Time, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.change(now, text)
}

func (v *live) change(now time.Time, text string) {
	v.changes = append(v.changes, now.Format(time.TimeOnly)+"  "+visibleCell(text))
	v.changes = v.changes[max(0, len(v.changes)-mostChanges):]
}

// update takes in an answer.
func (v *live) update(now time.Time, a statusAnswer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	gone := v.tracks
	v.answer, v.tracks = &a, make(map[string]*track)
	for _, p := range a.Peerings {
		name := v.o.subject(p)
		t := gone[name]
		if t == nil {
			t = &track{gateways: make(map[int]counted), was: p}
			v.change(now, fmt.Sprintf("%s: %s, %d of %d nodes verified", name, withReason(p), p.NodesReady, p.NodesTotal))
		}
		v.tracks[name] = t
		t.sample(now, p)
		if p.State != t.was.State {
			v.change(now, fmt.Sprintf("%s: %s, was %s", name, withReason(p), t.was.State))
		}
		if p.NodesReady != t.was.NodesReady || p.NodesTotal != t.was.NodesTotal {
			v.change(now, fmt.Sprintf("%s: %d of %d nodes verified, was %d of %d", name, p.NodesReady, p.NodesTotal, t.was.NodesReady, t.was.NodesTotal))
		}
		if p.Pod != t.was.Pod {
			v.change(now, fmt.Sprintf("%s: gateway %s, was %s", name, orDash(p.Pod), orDash(t.was.Pod)))
		}
		t.was = p
	}
	for name := range gone {
		if v.tracks[name] == nil {
			v.change(now, name+": the peering is gone")
		}
	}
}

func withReason(p status.Peering) string {
	if p.Reason == "" {
		return string(p.State)
	}
	return string(p.State) + ": " + p.Reason
}

// sample adds what is measured now to the sparklines.
func (t *track) sample(now time.Time, p status.Peering) {
	rtt, received, sent := float64(noSample), float64(noSample), float64(noSample)
	if p.RTT >= 0 {
		rtt = float64(p.RTT)
	}
	for _, g := range p.Gateways {
		if c, ok := t.count(now, g); ok {
			received, sent = max(received, 0)+c.received, max(sent, 0)+c.sent
		}
	}
	if at := now.Truncate(sampleEvery); at != t.sampled {
		t.sampled = at
		for _, line := range []*[]float64{&t.rtt, &t.received, &t.sent} {
			*line = append((*line)[max(0, len(*line)+1-mostSamples):], 0)
		}
	}
	last := len(t.rtt) - 1
	t.rtt[last], t.received[last], t.sent[last] = rtt, received, sent
}

// count compares a gateway's counters with those of its report before; false: it has none that is recent, or has begun anew.
func (t *track) count(now time.Time, g status.Gateway) (counted, bool) {
	if g.ReportAge == nil || health.Late(*g.ReportAge, 0) {
		delete(t.gateways, g.Number)
		return counted{}, false
	}
	c := counted{at: now.Add(-*g.ReportAge), received: noSample}
	for _, tunnel := range g.Tunnels {
		c.rx, c.tx = c.rx+tunnel.RxBytes, c.tx+tunnel.TxBytes
	}
	before, ok := t.gateways[g.Number]
	between := c.at.Sub(before.at)
	switch {
	case ok && between < time.Second: // the same report
		return before, before.received >= 0
	case ok && c.rx >= before.rx && c.tx >= before.tx:
		c.received, c.sent = float64(c.rx-before.rx)/between.Seconds(), float64(c.tx-before.tx)/between.Seconds()
	}
	t.gateways[g.Number] = c
	return c, c.received >= 0
}

// frame is the view, for a terminal of a size.
func (v *live) frame(now time.Time, size func() (columns, rows int)) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	columns, rows := size()
	lines := []string{now.Format(time.TimeOnly) + "  liqoctl network status --watch, Ctrl-C ends it", ""}
	switch {
	case v.answer == nil:
		lines = append(lines, "waiting for the cluster")
	case len(v.answer.Peerings) == 0:
		lines = append(lines, "no peerings")
	default:
		lines = append(lines, v.table(columns)...)
	}
	if v.answer != nil {
		var b strings.Builder
		v.o.notes(&b, *v.answer)
		for line := range strings.Lines(b.String()) {
			lines = append(lines, strings.Split(strings.TrimRight(wrap(line, columns, 0), "\n"), "\n")...)
		}
	}
	if room := rows - 1 - len(lines) - 2; len(v.changes) > 0 && room > 0 {
		lines = append(lines, "", "changes:")
		changes := slices.Clone(v.changes[max(0, len(v.changes)-min(room, 10)):])
		slices.Reverse(changes)
		lines = append(lines, changes...)
	}
	if more := len(lines) - (rows - 1); more > 0 {
		lines = append(lines[:max(0, rows-2)], fmt.Sprintf("and %d more lines", more+1))
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(clearLine + fit(line, columns) + "\n") // a line may end at the last column, which clearing would take
	}
	return b.String() + clearBelow
}

// liveColumn is a column of the live table. Those with a line of samples show it where there is room.
type liveColumn struct {
	title   string
	cell    func(status.Peering, *track) string
	samples func(*track) []float64
}

// liveColumns are in the order in which they give way to a narrow terminal, the last one first.
func (v *live) liveColumns() []liveColumn {
	rate := func(of func(*track) []float64) func(status.Peering, *track) string {
		return func(_ status.Peering, t *track) string {
			if all := of(t); all[len(all)-1] >= 0 {
				return byteCount(int64(all[len(all)-1])) + "/s"
			}
			return unknown
		}
	}
	rtt, received, sent := func(t *track) []float64 { return t.rtt }, func(t *track) []float64 { return t.received }, func(t *track) []float64 { return t.sent }
	columns := []liveColumn{
		{"PEER", func(p status.Peering, _ *track) string { return v.o.subject(p) }, nil},
		{"STATE", func(p status.Peering, _ *track) string { return string(p.State) }, nil},
		{"RTT", func(p status.Peering, _ *track) string { return roundTrip(p.RTT) }, rtt},
		{"RECEIVED", rate(received), received}, {"SENT", rate(sent), sent},
	}
	for _, c := range statusColumns() {
		if c.title == "NODES" || c.title == "LOSS" {
			columns = append(columns, liveColumn{c.title, func(p status.Peering, _ *track) string { return c.cell(p) }, nil})
		}
	}
	return columns
}

// table are the lines of the table, in a width.
func (v *live) table(width int) []string {
	const gap = 2
	shown := v.liveColumns()
	cells := make([][]string, len(v.answer.Peerings))
	widths := make([]int, len(shown))
	for i, c := range shown {
		widths[i] = len(c.title)
		for j, p := range v.answer.Peerings {
			cells[j] = append(cells[j], visibleCell(orDash(c.cell(p, v.tracks[v.o.subject(p)]))))
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[j][i]))
		}
	}
	fits, spark := share(width, widths, gap)
	rows := make([]string, 1+len(cells))
	for i, c := range shown[:fits] {
		wide := widths[i] + gap
		if c.samples != nil && spark > 0 {
			wide += spark + 1
		}
		rows[0] += pad(c.title, wide)
		for j, p := range v.answer.Peerings {
			text := pad(cells[j][i], wide)
			if c.samples != nil && spark > 0 {
				text = pad(cells[j][i], widths[i]+1) + pad(sparkline(c.samples(v.tracks[v.o.subject(p)]), spark), spark+gap)
			}
			if c.title == "STATE" && v.o.coloured {
				text = stateColour(cells[j][i]) + strings.TrimPrefix(text, cells[j][i])
			}
			rows[j+1] += text
		}
	}
	return rows
}

// share is how many columns fit into a width, and how much room each of the lines of samples has; 0: none.
func share(width int, widths []int, gap int) (fits, spark int) {
	const least, lines = 5, 3
	total := -gap
	for i, w := range widths {
		if total += w + gap; total > width && i > 1 {
			return i, 0
		}
	}
	if room := (width-total)/lines - 1; room >= least {
		spark = min(room, mostSamples/2)
	}
	return len(widths), spark
}

// pad adds blanks up to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// sparkline draws the newest samples, the highest of which has a whole block.
func sparkline(samples []float64, width int) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	samples = samples[max(0, len(samples)-width):]
	most := slices.Max(append([]float64{0}, samples...))
	line := []rune(strings.Repeat(" ", width-len(samples)))
	for _, s := range samples {
		switch {
		case s < 0:
			line = append(line, ' ')
		case most == 0:
			line = append(line, blocks[0])
		default:
			line = append(line, blocks[int(s/most*float64(len(blocks)-1))])
		}
	}
	return string(line)
}

// fit cuts a line that is wider than the terminal. Colours, the only control sequences in it, have no width.
func fit(line string, columns int) string {
	var b strings.Builder
	count, colour := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			colour = true
		case colour:
			colour = r != 'm'
		default:
			if count++; count > columns {
				continue
			}
		}
		if r != '\n' {
			b.WriteRune(r)
		}
	}
	return b.String()
}
