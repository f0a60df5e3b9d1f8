//go:build !linux

package trace

import (
	"context"
	"errors"
)

// compute needs package netops, which supports the state of kernels on Linux only.
func compute(_, _ *side, r Result) (Result, error) {
	return r, errors.New("trace: computed on Linux only")
}

func (Options) live(context.Context, *side, *side, Result) (*Live, error) { return nil, nil }
