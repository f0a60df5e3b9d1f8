// Package netnstest gives tests network namespaces that end with them. It needs root.
package netnstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
)

// Namespace is a network namespace that lives as long as a test.
type Namespace struct {
	t      *testing.T
	handle netns.NsHandle
}

// New makes a namespace, in which only the loopback device is, and that is up.
func New(t *testing.T) Namespace {
	t.Helper()
	ns := Namespace{t: t}
	if err := onThread(func() (err error) {
		ns.handle, err = netns.New()
		return err
	}); err != nil {
		t.Fatalf("make a network namespace: %v (it needs root)", err)
	}
	t.Cleanup(func() {
		if err := ns.handle.Close(); err != nil {
			t.Errorf("close a network namespace: %v", err)
		}
	})
	ns.IP("link set lo up")
	return ns
}

// For returns the namespace as another test uses it, such as a subtest: that one fails of its commands.
func (ns Namespace) For(t *testing.T) Namespace {
	ns.t = t
	return ns
}

// FD is the namespace's file descriptor.
func (ns Namespace) FD() int { return int(ns.handle) }

// Path is where other processes find the namespace.
func (ns Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.FD()) }

// Command returns a command that will run in the namespace until the context ends.
func (ns Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + ns.Path(), name}, args...)...)
}

// Run executes a command in the namespace and returns what it prints.
func (ns Namespace) Run(name string, args ...string) string {
	ns.t.Helper()
	return ns.Feed("", name, args...)
}

// Feed executes a command that reads some input.
func (ns Namespace) Feed(input, name string, args ...string) string {
	ns.t.Helper()
	cmd := ns.Command(ns.t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		ns.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// IP executes ip(8) with arguments divided by spaces.
func (ns Namespace) IP(args string) string {
	ns.t.Helper()
	return ns.Run("ip", strings.Fields(args)...)
}

// Do calls a function on a thread that is in the namespace.
func (ns Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := netns.Set(ns.handle); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// onThread calls a function on a thread of its own, which ends with it: it may leave the network namespace.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- f()
	}()
	return <-done
}
