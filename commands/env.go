package commands

import (
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"liqonet.io/liqonet/internal/buildinfo"
)

// Env is what commands need of the process that they run in.
type Env struct {
	In  io.Reader
	Out io.Writer // the answer, and nothing else
	Err io.Writer // progress, warnings, errors, logs
	// OutTerminal and ErrTerminal say that somebody looks at Out and Err.
	OutTerminal, ErrTerminal bool
	// LookupEnv returns an environment variable; nil stands for an empty environment.
	LookupEnv func(name string) (value string, ok bool)
	Build     buildinfo.Info

	// Set once the flags are read.
	log      *slog.Logger
	progress *progress
}

// variable returns an environment variable, "" when it is not set.
func (e *Env) variable(name string) string {
	if e.LookupEnv == nil {
		return ""
	}
	value, _ := e.LookupEnv(name)
	return value
}

// start makes what depends on the global flags. Debug logs and a spinner would overwrite each other: with
// verbose, progress is in plain lines.
func (e *Env) start(verbose bool) {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	e.log = slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{Level: level}))
	// What client-go logs of its own accord it also returns as errors.
	library := slog.New(slog.DiscardHandler)
	if verbose {
		library = e.log
	}
	klog.SetSlogLogger(library)
	e.progress = newProgress(e.Err, e.ErrTerminal && !verbose, e.ErrTerminal && e.colours())
}

// colours reports whether the user wants any: see no-color.org.
func (e *Env) colours() bool {
	return e.variable("NO_COLOR") == "" && e.variable("TERM") != "dumb"
}
