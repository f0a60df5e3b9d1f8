package commands

import (
	"cmp"
	"io"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/cluster"
)

// Env is what commands need of the process that they run in.
type Env struct {
	In  io.Reader
	Out io.Writer // the answer, and nothing else
	Err io.Writer // progress, warnings, errors, logs
	// Whether these are terminals.
	InTerminal, OutTerminal, ErrTerminal bool
	Columns                              int // width of the terminal; 0 stands for 80
	// As the user calls it: "kubectl liqonet" for the plugin; "" is liqoctl.
	Program string
	Environ []string // as of os.Environ
	Build   buildinfo.Info

	// Set once the flags are read.
	verbose  bool
	progress *progress
	locking  cluster.LockOptions // of the command that runs
}

// variable returns an environment variable, "" when it is not set.
func (e *Env) variable(name string) string {
	for _, entry := range e.Environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// called replaces liqoctl's name in commands by the one that the user calls it by.
func (e *Env) called(text string) string {
	return strings.ReplaceAll(text, programName+" ", cmp.Or(e.Program, programName)+" ")
}

// start makes what depends on the global flags. Lines and a spinner would overwrite each other: with verbose, progress
// is in plain lines.
func (e *Env) start(verbose bool) {
	// What client-go logs of its own accord it also returns as errors.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	e.verbose = verbose
	e.progress = newProgress(e.Err, e.ErrTerminal && !verbose && !e.dumb(), e.ErrTerminal && e.colours())
}

// dumb reports a terminal that knows no control sequences.
func (e *Env) dumb() bool { return e.variable("TERM") == "dumb" }

// colours reports whether the user wants any: see no-color.org.
func (e *Env) colours() bool { return e.variable("NO_COLOR") == "" && !e.dumb() }
