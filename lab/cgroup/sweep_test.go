package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// TestSweepEndsAndRemoves needs root.
func TestSweepEndsAndRemoves(t *testing.T) {
	name := fmt.Sprintf("liqonet-lab-test.%d", os.Getpid())
	g, err := Create(name)
	require.NoError(t, err)
	child, err := g.Child("node-x")
	require.NoError(t, err)
	sleeper := exec.Command("sleep", "1000")
	require.NoError(t, sleeper.Start())
	for _, h := range child.Hierarchies {
		procs := filepath.Join(child.dir(h), "cgroup.procs")
		require.NoError(t, os.WriteFile(procs, fmt.Append(nil, sleeper.Process.Pid), 0))
	}
	found, err := Find(name)
	require.NoError(t, err)
	if len(found) != len(g.Hierarchies) {
		t.Fatalf("found %v, want a group in each of %d hierarchies", found, len(g.Hierarchies))
	}

	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }() // a zombie stays in its groups
	require.NoError(t, Sweep(t.Context(), name))
	if err := <-ended; err == nil {
		t.Error("the process in the group ended by itself, want killed")
	}
	if found, err = Find(name); err != nil || len(found) > 0 {
		t.Errorf("after Sweep: found %v, error %v", found, err)
	}
	if err := Sweep(t.Context(), name); err != nil {
		t.Errorf("second Sweep: %v", err)
	}
}
