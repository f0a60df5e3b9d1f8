package state

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/require"
)

// holdVariable makes the test binary hold the lab that it names, and say so, until it is killed.
const holdVariable = "TEST_HOLD_LAB"

func TestMain(m *testing.M) {
	name := os.Getenv(holdVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	lock, err := (Paths{Name: name}).Hold()
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	for lock != nil { // which keeps it open
		_ = unix.Pause() // Go's runtime ends a program whose goroutines all wait
	}
}

// hold starts a process that holds the lab.
func hold(t *testing.T, p Paths) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holdVariable+"="+p.Name)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	if n, err := out.Read(make([]byte, len("held\n"))); n == 0 {
		t.Fatal(err, cmd.Wait())
	}
	return cmd
}

// TestRemove needs root.
func TestRemove(t *testing.T) {
	p := Paths{Name: "state-test"}
	require.NoError(t, p.Create())
	if pid, err := p.Holder(); pid != 0 || err != nil {
		t.Fatalf("holder of a new lab: %d, error %v", pid, err)
	}
	holder := hold(t, p)
	if pid, err := p.Holder(); pid != holder.Process.Pid || err != nil {
		t.Errorf("holder %d, error %v, want %d", pid, err, holder.Process.Pid)
	}
	if _, err := p.Hold(); !errors.Is(err, errHeld) {
		t.Errorf("second holder: error %v, want %v", err, errHeld)
	}
	require.NoError(t, os.WriteFile(filepath.Join(p.Images(), "x.tar"), nil, 0o600))
	ended := make(chan error, 1)
	go func() { ended <- holder.Wait() }()

	require.NoError(t, p.Remove(t.Context()))
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("holder ended by itself, want killed: %v", err)
	}
	for _, dir := range []string{p.Run(), p.Data()} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s after Remove: error %v", dir, err)
		}
	}
	if err := p.Remove(t.Context()); err != nil {
		t.Errorf("second Remove: %v", err)
	}
}

func TestHoldOfARemovedLab(t *testing.T) {
	p := Paths{Name: "state-test-removed"}
	require.NoError(t, p.Create())
	f, err := os.Create(p.Lock())
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, p.Remove(t.Context()))
	if err := lock(f); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("lock a removed file: %v, want %v", err, os.ErrNotExist)
	}
}
