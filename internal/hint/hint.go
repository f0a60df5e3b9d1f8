// Package hint attaches advice for the user to errors: a command to run, a flag to use. An error type with advice has a
// method Hint() string. For other errors, With adds it.
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
	switch e := err.(type) { //nolint:errorlint // walks the wrapped errors
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
