package guest

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/require"
)

// TestPin pins a process more than there are processors: each of the others has one of its own.
func TestPin(t *testing.T) {
	t.Setenv("LIQONET_LAB_CACHE", t.TempDir())
	processors := func(pid int) unix.CPUSet {
		var s unix.CPUSet
		require.NoError(t, unix.SchedGetaffinity(pid, &s))
		return s
	}
	pinned := func() (unix.CPUSet, func()) {
		cmd := exec.CommandContext(t.Context(), "sleep", "infinity")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		release, err := pin(cmd.Process.Pid)
		require.NoError(t, err)
		t.Cleanup(release)
		return processors(cmd.Process.Pid), release
	}
	all := processors(0)
	taken := map[unix.CPUSet]func(){}
	for range all.Count() {
		one, release := pinned()
		if one.Count() != 1 || taken[one] != nil {
			t.Fatalf("a guest has %d processors, or that of another one", one.Count())
		}
		taken[one] = release
	}
	if rest, _ := pinned(); rest != all {
		t.Errorf("a further guest has %d processors, want %d", rest.Count(), all.Count())
	}
	for one, release := range taken {
		release()
		if again, _ := pinned(); again != one {
			t.Error("the processor of a guest that ended was not given to the next one")
		}
	}
}
