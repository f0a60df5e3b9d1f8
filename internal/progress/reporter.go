package progress

import "time"

// Reporter receives the progress of an operation. Its methods may be called concurrently.
type Reporter interface {
	// Stage reports the start of a stage.
	Stage(name string)
	// Done reports the end of a stage: its result in a few words, and its duration.
	Done(name, detail string, took time.Duration)
	// Note reports information that needs no action.
	Note(text string)
	// Warn reports a problem that may need action. hint is that action.
	Warn(text, hint string)
}

// planning is the Reporter of a dry run. It omits stages, because a dry run changes nothing.
type planning struct{ Reporter }

// Stage implements Reporter.
func (planning) Stage(string) {}

// Done implements Reporter.
func (planning) Done(string, string, time.Duration) {}

// Quiet is the Reporter of a dry run within another operation, which reports notes and warnings itself.
type Quiet struct{ planning }

// Note implements Reporter.
func (Quiet) Note(string) {}

// Warn implements Reporter.
func (Quiet) Warn(string, string) {}

// Planning returns the Reporter of a dry run: it forwards notes and warnings.
func Planning(r Reporter) Reporter { return planning{r} }
