//go:build !linux

package netops

import (
	"context"
	"errors"
	"net/netip"
)

// errNotLinux is what everything here returns: the state is a value anywhere, the kernel is Linux.
var errNotLinux = errors.New("the network of this system cannot be configured: it is not Linux")

// Kernel stands for the network configuration of a namespace, which there is on Linux only.
type Kernel struct{}

// Open returns an error.
func Open() (*Kernel, error) { return nil, errNotLinux }

// OpenAt returns an error.
func OpenAt(int) (*Kernel, error) { return nil, errNotLinux }

// Close does nothing.
func (*Kernel) Close() error { return nil }

// Observe returns an error.
func (*Kernel) Observe() (State, error) { return State{}, errNotLinux }

// Apply returns an error.
func (*Kernel) Apply(Plan) error { return errNotLinux }

// Watch returns an error.
func (*Kernel) Watch(context.Context) (<-chan struct{}, error) { return nil, errNotLinux }

// FlushConntrack returns an error.
func (*Kernel) FlushConntrack([]netip.Prefix) error { return errNotLinux }

// Cleanup returns an error.
func (*Kernel) Cleanup() error { return errNotLinux }
