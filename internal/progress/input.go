package progress

import (
	"fmt"

	"liqonet.io/liqonet/internal/cluster"
)

// InputError is a wish that no state of the clusters could fulfil. Nothing was changed.
type InputError struct {
	Err    error
	Advice string
}

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Hint returns the advice; "" if there is none.
func (e *InputError) Hint() string { return e.Advice }

// SameCluster refuses two contexts of one cluster.
func SameCluster(local, remote *cluster.Cluster) error {
	return &InputError{
		Err:    fmt.Errorf("%q and %q are the same cluster", local.Context, remote.Context),
		Advice: "name another one with --remote-context or --remote-kubeconfig",
	}
}
