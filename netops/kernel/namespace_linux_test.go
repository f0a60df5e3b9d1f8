package kernel

import (
	"os"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// namespace is a network namespace that lives as long as the test.
type namespace struct {
	netns.Namespace
	t *testing.T
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	return namespace{netns.New(t), t}
}

// kernel returns the namespace's configuration.
func (ns namespace) kernel() *Kernel {
	ns.t.Helper()
	k, err := OpenAt(ns.FD())
	require.NoError(ns.t, err)
	ns.t.Cleanup(func() {
		assert.NoError(ns.t, k.Close())
	})
	return k
}

// newKernel returns a namespace and its configuration.
func newKernel(t *testing.T) (namespace, *Kernel) {
	t.Helper()
	ns := newNamespace(t)
	return ns, ns.kernel()
}

// overlays are the kinds of overlay that the kernel under test has, from LIQONET_TEST_OVERLAYS, for a short test the
// first alone.
func overlays() []netops.LinkKind {
	var kinds []netops.LinkKind
	for _, kind := range strings.Fields(os.Getenv("LIQONET_TEST_OVERLAYS")) {
		kinds = append(kinds, netops.LinkKind(kind))
	}
	switch {
	case kinds == nil:
		return []netops.LinkKind{netops.KindVXLAN}
	case testing.Short():
		return kinds[:1]
	}
	return kinds
}

func observe(t *testing.T, k *Kernel) netops.State {
	t.Helper()
	have, err := k.Observe()
	require.NoError(t, err)
	return have
}

// reach applies what leads to a state and fails unless the kernel is in it afterwards. It returns the plan.
func reach(t *testing.T, k *Kernel, want netops.State) netops.Plan {
	t.Helper()
	have := observe(t, k)
	before := netops.Diff(netops.State{}, have)
	p := netops.Diff(have, want)
	if err := k.Apply(p); err != nil {
		t.Fatalf("apply: %v\nplan:\n%s", err, p)
	}
	have = observe(t, k)
	if rest := netops.Diff(have, want); !rest.Empty() {
		t.Fatalf("from:\n%s\nby the plan:\n%s\nto:\n%s\nthere is still to do:\n%s", before, p, netops.Diff(netops.State{}, have), rest)
	}
	return p
}
