package progress

import "time"

// Reporter receives the progress of an operation. Its methods may be called concurrently.
type Reporter interface {
	// Stage reports the start of a stage.
	Stage(name string)
	// Done reports the end of a stage: its result in a few words, and its duration.
	Done(name, detail string, took time.Duration)
	// Note reports what needs no action.
	Note(text string)
	// Warn reports what may need action. hint is that action.
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
