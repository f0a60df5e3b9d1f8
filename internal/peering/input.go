package peering

// InputError is a wish that no state of the clusters could fulfil. Nothing was changed.
type InputError struct {
	Err  error
	hint string
}

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Hint returns the advice; "" if there is none.
func (e *InputError) Hint() string { return e.hint }
