package process

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/require"
)

// parentVariable makes the test binary start a child, print its number and wait to be killed.
const parentVariable = "TEST_SPAWN"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	child := exec.Command("sleep", "1000")
	if err := NewSpawner().Start(child, nil); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
	for {
		_ = unix.Pause() // Go's runtime ends a program whose goroutines all wait
	}
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, parent.Wait())
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	child, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(child)
	require.NoError(t, parent.Process.Kill())
	if err := parent.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("parent ended by itself, want killed: %v", err)
	}
	// The descriptor becomes readable when the child ends.
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}, 60_000)
	if err != nil || ready != 1 {
		t.Errorf("child %d still runs a minute after its parent's end: %v", pid, err)
	}
}

// TestStartInNamespace needs root.
func TestStartInNamespace(t *testing.T) {
	// Before the first thread of the process may be a thread that enters another.
	home, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	ns, err := netns.New()
	require.NoError(t, err)
	defer ns.Close()
	s := NewSpawner()
	readlink := func(in *netns.Namespace) string {
		var out strings.Builder
		cmd := exec.Command("readlink", "/proc/self/ns/net")
		cmd.Stdout = &out
		require.NoError(t, s.Start(cmd, in))
		require.NoError(t, cmd.Wait())
		return strings.TrimSpace(out.String())
	}
	inside, outside := readlink(ns), readlink(nil)
	if inside == home || outside != home {
		t.Errorf("home %s, inside %s, outside %s", home, inside, outside)
	}
}

func TestKeepStartsAgain(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log", "service.log")
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() {
		kept <- NewSpawner().Keep(ctx, Service{Name: "x", Args: []string{"/bin/sh", "-c", "echo ran; exit 3"}, Log: log}, nil)
	}()
	const patience = time.Minute
	limit := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for text := ""; strings.Count(text, "ran\n") < 2; {
		select {
		case <-limit:
			t.Fatalf("after %s the log has %q, want two runs", patience, text)
		case <-tick.C:
			if b, err := os.ReadFile(log); err == nil {
				text = string(b)
			}
		}
	}
	cancel()
	if err := <-kept; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestOnceWaitsForItsPath(t *testing.T) {
	dir := t.TempDir()
	gate, mark := filepath.Join(dir, "gate"), filepath.Join(dir, "mark")
	kept := make(chan error, 1)
	go func() {
		kept <- NewSpawner().Keep(t.Context(), Service{
			Name: "x", Args: []string{"/bin/sh", "-c", "test -e " + gate + " && echo >" + mark},
			Log: filepath.Join(dir, "log"), After: []string{gate}, Once: true,
		}, nil)
	}()
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.NoError(t, <-kept)
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}
