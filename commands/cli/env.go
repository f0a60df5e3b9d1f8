// Package cli is what all commands share: streams and settings, exit codes, help, completion, and the flags of
// clusters, pods and locks. An Action leads from flags to an operation and its printed result.
package cli

import (
	"cmp"
	"io"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Env is the environment of the process for commands.
type Env struct {
	In  io.Reader
	Out io.Writer // only the answer
	Err io.Writer // progress, warnings, errors, logs
	// Whether these are terminals.
	InTerminal, OutTerminal, ErrTerminal bool
	Columns                              int // width of the terminal; 0: 80
	// The program's name for the user: "kubectl liqonet" for the plugin; "" is liqoctl.
	Program string
	Environ []string // as returned by os.Environ
	Build   buildinfo.Info

	// Set once the flags are read.
	Verbose     bool // show what takes time, and why
	LogRequests bool
	Progress    *ui.Progress
	locking     kube.LockOptions // of the command that runs
}

// Variable returns an environment variable, "" when it is not set.
func (e *Env) Variable(name string) string {
	for _, entry := range e.Environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Called replaces liqoctl's name in commands by the name under which the user started it.
func (e *Env) Called(text string) string {
	return strings.ReplaceAll(text, ProgramName+" ", cmp.Or(e.Program, ProgramName)+" ")
}

// Start makes what depends on the global flags. Lines and a spinner would overwrite each other: with either flag,
// progress is in plain lines.
func (e *Env) Start() {
	// What client-go logs of its own accord it also returns as errors.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	e.Progress = ui.NewProgress(e.Err, e.ErrTerminal && !e.Verbose && !e.LogRequests && !e.dumb(), e.ErrTerminal && e.Colours())
}

// dumb reports a terminal that knows no control sequences.
func (e *Env) dumb() bool { return e.Variable("TERM") == "dumb" }

// Colours reports whether the user wants any: see no-color.org.
func (e *Env) Colours() bool { return e.Variable("NO_COLOR") == "" && !e.dumb() }

// Lost warns that a cluster does not answer while something watches it.
func (e *Env) Lost(what string) func(error) {
	return func(err error) {
		e.Progress.Warn(progress.WithoutRequests(err).Error(), "the "+what+" goes on when the cluster answers again")
	}
}
