// Package progress reports the steps of a long operation and their duration, to a terminal or a log.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Intervals between two reports of one step: a terminal's line is replaced, a log grows.
const (
	terminalInterval = time.Second
	logInterval      = 15 * time.Second
)

// Reporter writes progress. Its methods may be called by several goroutines.
type Reporter struct {
	out      io.Writer
	terminal bool
	mu       sync.Mutex
}

// New returns a reporter that writes to out: plain lines, unless out is a terminal.
func New(out io.Writer) *Reporter {
	f, ok := out.(*os.File)
	return &Reporter{out: out, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// Line reports something that has happened.
func (r *Reporter) Line(format string, args ...any) {
	r.write(fmt.Sprintf(format, args...), true)
}

// Step runs f and reports that it runs, with its note. f's note may be set by other goroutines.
func (r *Reporter) Step(name string, f func(n *Note) error) error {
	var note Note
	started := time.Now()
	interval := logInterval
	if r.terminal {
		interval = terminalInterval
	}
	done := make(chan error, 1)
	go func() { done <- f(&note) }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.write(describe(name, note.get(), time.Since(started)), !r.terminal)
		case err := <-done:
			if err == nil {
				r.Line("%s, done", describe(name, note.get(), time.Since(started)))
			}
			return err
		}
	}
}

func describe(name, note string, d time.Duration) string {
	text := fmt.Sprintf("%s: %s", name, d.Round(time.Second))
	if note != "" {
		text += ", " + note
	}
	return text
}

// write replaces the terminal's line, or appends one; final ends it.
func (r *Reporter) write(text string, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terminal {
		text = "\r\x1b[K" + text
	}
	if final {
		text += "\n"
	}
	// Progress that cannot be shown is no reason to stop.
	_, _ = io.WriteString(r.out, text)
}

// Note describes the progress of a step, such as "812 packages compiled".
type Note struct {
	mu   sync.Mutex
	text string
}

// Set replaces the note.
func (n *Note) Set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = text
}

func (n *Note) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}
