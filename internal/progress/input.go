package progress

import (
	"fmt"
)

// InputError reports an input that no state of the clusters could satisfy. Nothing was changed.
type InputError struct {
	Err    error
	Advice string
}

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Hint returns the hint; "" if there is none.
func (e *InputError) Hint() string { return e.Advice }

// SameCluster returns the error for two contexts of the same cluster.
func SameCluster(local, remote string) error {
	return &InputError{
		Err:    fmt.Errorf("%q and %q are the same cluster", local, remote),
		Advice: "name another one with --remote-context or --remote-kubeconfig",
	}
}
