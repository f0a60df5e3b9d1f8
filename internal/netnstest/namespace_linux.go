// Package netnstest gives tests network namespaces that end with them. It needs root.
package netnstest

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/netns"
)

// Namespace is a network namespace that lives as long as a test.
type Namespace struct {
	netns.Namespace
	t *testing.T
}

// New makes a namespace, in which only the loopback device is, and that is up.
func New(t *testing.T) Namespace {
	t.Helper()
	made, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	ns := Namespace{made, t}
	ns.IP("link set lo up")
	return ns
}

// For returns the namespace as another test uses it, such as a subtest: that one fails of its commands.
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
	out, err := ns.Namespace.Run(ns.t.Context(), input, name, args...)
	if err != nil {
		ns.t.Fatal(err)
	}
	return out
}

// IP executes ip(8) with arguments divided by spaces.
func (ns Namespace) IP(args string) string {
	ns.t.Helper()
	return ns.Run("ip", strings.Fields(args)...)
}

// Inside calls a function on a thread that is in the namespace. Its error ends the test.
func (ns Namespace) Inside(do func() error) {
	ns.t.Helper()
	if err := ns.Do(do); err != nil {
		ns.t.Fatal(err)
	}
}
