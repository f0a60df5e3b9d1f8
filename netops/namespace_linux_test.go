package netops

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
)

// namespace is a network namespace that lives as long as the test.
type namespace struct {
	t      *testing.T
	handle netns.NsHandle
}

// newNamespace makes a namespace, in which only the loopback device is.
func newNamespace(t *testing.T) namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	handle, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := netns.Set(home); err != nil {
		panic(err) // this thread must not go back to others
	}
	t.Cleanup(func() { handle.Close() })
	ns := namespace{t: t, handle: handle}
	ns.ip("link set lo up")
	return ns
}

// kernel returns the namespace's configuration.
func (ns namespace) kernel() *Kernel {
	ns.t.Helper()
	k, err := OpenAt(int(ns.handle))
	if err != nil {
		ns.t.Fatal(err)
	}
	ns.t.Cleanup(func() {
		if err := k.Close(); err != nil {
			ns.t.Error(err)
		}
	})
	return k
}

// path is where other processes find the namespace.
func (ns namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(ns.handle)) }

// run executes a command in the namespace and returns what it prints.
func (ns namespace) run(command ...string) string {
	ns.t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns.path()}, command...)...).CombinedOutput()
	if err != nil {
		ns.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// ip executes ip(8) with arguments divided by spaces.
func (ns namespace) ip(args string) string {
	ns.t.Helper()
	return ns.run(append([]string{"ip"}, strings.Fields(args)...)...)
}

// script returns a function that executes a command whose input is the lines given to it.
func (ns namespace) script(command ...string) func(lines ...string) {
	return func(lines ...string) {
		ns.t.Helper()
		c := exec.Command("nsenter", append([]string{"--net=" + ns.path()}, command...)...)
		c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, err := c.CombinedOutput(); err != nil {
			ns.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
}

// inside calls a function on a thread that is in the namespace.
func (ns namespace) inside(do func() error) {
	ns.t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := netns.Set(ns.handle); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	if err := <-done; err != nil {
		ns.t.Fatal(err)
	}
}

// overlays are the kinds of overlay that the kernel under test has, from LIQONET_TEST_OVERLAYS, for a short test the
// first alone.
func overlays() []LinkKind {
	var kinds []LinkKind
	for _, kind := range strings.Fields(os.Getenv("LIQONET_TEST_OVERLAYS")) {
		kinds = append(kinds, LinkKind(kind))
	}
	switch {
	case kinds == nil:
		return []LinkKind{KindVXLAN}
	case testing.Short():
		return kinds[:1]
	}
	return kinds
}

// reach applies what leads to a state and fails unless the kernel is in it afterwards. It returns the plan.
func reach(t *testing.T, k *Kernel, want State) Plan {
	t.Helper()
	have, err := k.Observe()
	if err != nil {
		t.Fatal(err)
	}
	before := Diff(State{}, have)
	p := Diff(have, want)
	if err := k.Apply(p); err != nil {
		t.Fatalf("apply: %v\nplan:\n%s", err, p)
	}
	have, err = k.Observe()
	if err != nil {
		t.Fatal(err)
	}
	if rest := Diff(have, want); !rest.Empty() {
		t.Fatalf("from:\n%s\nby the plan:\n%s\nto:\n%s\nthere is still to do:\n%s", before, p, Diff(State{}, have), rest)
	}
	return p
}
