//go:build !linux

package trace

import (
	"context"
	"errors"
)

// compute needs the state of kernels, which package netops knows on Linux alone.
func compute(_, _ *side, r Result) (Result, error) {
	return r, errors.New("trace: computed on Linux only")
}

func (Options) live(context.Context, *side, *side, Result) (*Live, error) { return nil, nil }
