package ui

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pterm/pterm"
)

// slowStage is the duration of a stage after which plain output shows that it is running.
const slowStage = 3 * time.Second

// Progress shows the progress of an operation on standard error: in a terminal the stages that are running, in one line
// that is redrawn, else a line for each stage that is done. It is a progress.Reporter; its methods may be called
// concurrently.
type Progress struct {
	mu        sync.Mutex
	out       io.Writer
	animated  bool
	coloured  bool
	running   []string      // stages that have begun and not ended, oldest first
	slowAfter time.Duration // with a stage, before plain output names it
	spinner   *pterm.SpinnerPrinter
	latencies map[string][]time.Duration // of requests since the last stage ended, by cluster
}

// NewProgress returns the progress that is written to out.
func NewProgress(out io.Writer, animated, coloured bool) *Progress {
	return &Progress{out: out, animated: animated, coloured: coloured, slowAfter: slowStage}
}

// Stage shows the begin of a stage.
func (p *Progress) Stage(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = VisibleCell(name)
	p.running = append(p.running, name)
	if !p.animated {
		time.AfterFunc(p.slowAfter, func() { p.reportSlow(name) })
	}
	p.spin()
}

// reportSlow reports that a stage is still running.
func (p *Progress) reportSlow(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.running, name) {
		p.line("%s ...", name)
	}
}

// Done shows the end of a stage and its result.
func (p *Progress) Done(name, detail string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = VisibleCell(name)
	if i := slices.Index(p.running, name); i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
	}
	if !p.animated {
		if detail != "" {
			detail = ": " + visibleBlock(detail)
		}
		p.line("%s%s (%s)", name, detail, Seconds(took))
	}
	p.reportLatencies()
	p.spin()
}

// Request adds the latency of a request to an API server. The median follows the line of the stage that ends next.
func (p *Progress) Request(cluster string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latencies == nil {
		p.latencies = make(map[string][]time.Duration)
	}
	p.latencies[cluster] = append(p.latencies[cluster], took)
}

// reportLatencies reports the latencies of each cluster, and forgets them.
func (p *Progress) reportLatencies() {
	for _, cluster := range slices.Sorted(maps.Keys(p.latencies)) {
		all := slices.Sorted(slices.Values(p.latencies[cluster]))
		p.line("  API server of %s: median %s, requests: %d", VisibleCell(cluster), RoundTrip(all[len(all)/2]), len(all))
	}
	p.latencies = nil
}

// Note shows information.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("%s", visibleBlock(text))
	p.spin()
}

// Warn shows a problem that may need action, and a hint.
func (p *Progress) Warn(text, hint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(pterm.FgYellow, "warning:", text, hint)
	p.spin()
}

// Fail ends the animation and shows the error of a command.
func (p *Progress) Fail(err error, hint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	p.reportLatencies()
	p.report(pterm.FgRed, "error:", err.Error(), hint)
}

// report writes what happened, and what can be done about it.
func (p *Progress) report(c pterm.Color, label, text, hint string) {
	p.line("%s %s", p.colour(c, label), visibleBlock(text))
	if hint != "" {
		p.line("%s %s", p.colour(pterm.FgCyan, "hint:"), visibleBlock(hint))
	}
}

// Stop ends the animation.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	p.stopSpinner()
	p.reportLatencies()
}

// line writes a line in place of the spinner.
func (p *Progress) line(format string, args ...any) {
	p.stopSpinner()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// spin shows the stages that are running.
func (p *Progress) spin() {
	p.stopSpinner()
	if !p.animated || len(p.running) == 0 {
		return
	}
	spinner := pterm.DefaultSpinner.WithWriter(p.out).WithRemoveWhenDone().WithText(strings.Join(p.running, ", "))
	if !p.coloured {
		plain := pterm.NewStyle()
		spinner.Style, spinner.MessageStyle, spinner.TimerStyle = plain, plain, plain
	}
	p.spinner, _ = spinner.Start() // never fails: the error is part of the interface
}

func (p *Progress) stopSpinner() {
	if p.spinner != nil {
		_ = p.spinner.Stop()
		p.spinner = nil
	}
}

// StateColour paints the state of a peering. Each colour takes the same number of characters, also that of other texts.
func StateColour(state string) string {
	colour, ok := map[string]pterm.Color{"healthy": pterm.FgGreen, "degraded": pterm.FgYellow, "connecting": pterm.FgYellow, "down": pterm.FgRed, "unknown": pterm.FgRed}[state]
	if !ok {
		colour = pterm.FgDefault
	}
	return colour.Sprint(state)
}

func (p *Progress) colour(c pterm.Color, text string) string {
	if !p.coloured {
		return text
	}
	return c.Sprint(text)
}
