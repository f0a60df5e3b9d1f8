// Package netnstest gives tests network namespaces that end with them. It needs root.
package netnstest

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/netns"
)

// Namespace is a network namespace that lives as long as a test.
type Namespace struct {
	t  *testing.T
	ns netns.Namespace
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
	ns := Namespace{t: t, ns: made}
	ns.IP("link set lo up")
	return ns
}

// For returns the namespace as another test uses it, such as a subtest: that one fails of its commands.
func (ns Namespace) For(t *testing.T) Namespace {
	ns.t = t
	return ns
}

// FD is the namespace's file descriptor.
func (ns Namespace) FD() int { return ns.ns.FD() }

// Path is where other processes find the namespace.
func (ns Namespace) Path() string { return ns.ns.Path() }

// Command returns a command that will run in the namespace until the context ends.
func (ns Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return ns.ns.Command(ctx, name, args...)
}

// Run executes a command in the namespace and returns what it prints.
func (ns Namespace) Run(name string, args ...string) string {
	ns.t.Helper()
	return ns.Feed("", name, args...)
}

// Feed executes a command that reads some input.
func (ns Namespace) Feed(input, name string, args ...string) string {
	ns.t.Helper()
	out, err := ns.ns.Run(ns.t.Context(), input, name, args...)
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

// Do calls a function on a thread that is in the namespace.
func (ns Namespace) Do(f func() error) error { return ns.ns.Do(f) }
