package netns

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

// Namespace is a network namespace that lives as long as a test. An error ends the test.
type Namespace struct {
	Handle
	t *testing.T
}

// New makes a namespace whose only link is the loopback device, which is up.
func New(t *testing.T) Namespace {
	t.Helper()
	made, err := Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	ns := Namespace{made, t}
	ns.IP("link set lo up")
	return ns
}

// For returns the namespace for another test, such as a subtest: errors end that one.
func (ns Namespace) For(t *testing.T) Namespace {
	ns.t = t
	return ns
}

// Run executes a command in the namespace and returns what it prints.
func (ns Namespace) Run(name string, args ...string) string {
	ns.t.Helper()
	return ns.Feed("", name, args...)
}

// Feed executes a command that reads some input.
func (ns Namespace) Feed(input, name string, args ...string) string {
	ns.t.Helper()
	out, err := ns.Handle.Run(ns.t.Context(), input, name, args...)
	require.NoError(ns.t, err)
	return out
}

// IP executes ip(8) with arguments divided by spaces.
func (ns Namespace) IP(args string) string {
	ns.t.Helper()
	return ns.Run("ip", strings.Fields(args)...)
}

// Inside calls a function on a thread that is in the namespace.
func (ns Namespace) Inside(do func() error) {
	ns.t.Helper()
	require.NoError(ns.t, ns.Do(do))
}
