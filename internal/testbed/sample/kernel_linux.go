package sample

import (
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/kernel"
)

// OpenKernel returns a namespace and its kernel.
func OpenKernel(t *testing.T) (netns.Namespace, *kernel.Kernel) {
	t.Helper()
	ns := netns.New(t)
	k, err := kernel.OpenAt(ns.FD())
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return ns, k
}
