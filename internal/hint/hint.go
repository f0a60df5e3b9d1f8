// Package hint adds to errors what the user can do about them: a command to run, a flag to use. An error type that
// knows a way out has a method Hint() string; others get one here.
package hint

// hinted is an error with advice.
type hinted struct {
	error
	advice string
}

// With adds advice to an error; nil stays nil.
func With(err error, advice string) error {
	if err == nil {
		return nil
	}
	return &hinted{err, advice}
}

func (e *hinted) Unwrap() error { return e.error }

// Hint returns the advice.
func (e *hinted) Hint() string { return e.advice }

// Of returns the first advice that is not empty in a tree of errors.
func Of(err error) string {
	if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
		return h.Hint()
	}
	switch e := err.(type) { //nolint:errorlint // this is the walk through what is wrapped
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return Of(cause)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			if advice := Of(cause); advice != "" {
				return advice
			}
		}
	}
	return ""
}
