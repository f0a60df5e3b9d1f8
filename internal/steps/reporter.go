package steps

import (
	"time"
)

// Reporter is told how an operation goes on. Its methods may be called concurrently.
type Reporter interface {
	// Stage says that a stage begins.
	Stage(name string)
	// Done says that the stage has ended, in a few words what came out, and how long it took.
	Done(name, detail string, took time.Duration)
	// Note says something worth knowing that needs no action.
	Note(text string)
	// Warn says something that may need action, and which.
	Warn(text, hint string)
}

// planning is the Reporter of a dry run: stages that change nothing are not worth a line.
type planning struct{ Reporter }

// Stage implements Reporter.
func (planning) Stage(string) {}

// Done implements Reporter.
func (planning) Done(string, string, time.Duration) {}

// Quiet is the Reporter of a dry run that is part of another operation, which reports the rest.
type Quiet struct{ planning }

// Note implements Reporter.
func (Quiet) Note(string) {}

// Warn implements Reporter.
func (Quiet) Warn(string, string) {}

// Planning is the Reporter of a dry run: it passes notes and warnings on.
func Planning(r Reporter) Reporter { return planning{r} }
