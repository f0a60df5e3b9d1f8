package main

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/testbed/executable"
	"liqonet.io/liqonet/internal/testbed/require"
)

// asProgram makes the test binary run as liqoctl.
const asProgram = "TEST_AS_LIQOCTL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// liqoctl returns the program, which is killed after a time limit.
func liqoctl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+t.TempDir())
	cmd.Stderr = t.Output()
	return cmd
}

// exitCode waits for the program and returns its exit code.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

func TestExitCodeIsTheCommands(t *testing.T) {
	for want, args := range map[int][]string{cli.ExitOK: {"version"}, cli.ExitUsage: {"--nonsense"}} {
		cmd := liqoctl(t, args...)
		require.NoError(t, cmd.Start())
		if got := exitCode(t, cmd); got != want {
			t.Errorf("liqoctl %v: exit code %d, want %d", args, got, want)
		}
	}
}

func TestInterrupt(t *testing.T) {
	// An API server that accepts connections and never answers.
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
current-context: silent
clusters: [{name: silent, cluster: {server: "http://%s"}}]
contexts: [{name: silent, context: {cluster: silent}}]
`, server.Addr())
	require.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	cmd := liqoctl(t, "network", "status", "--kubeconfig", kubeconfig)
	require.NoError(t, cmd.Start())
	call, err := server.Accept()
	require.NoError(t, err)
	defer call.Close()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	if got := exitCode(t, cmd); got != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", got, cli.ExitInterrupted)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	// The pipe is not read to its end: writing to it blocks forever, independent of the context.
	cmd := liqoctl(t, "image", "save", "-o", "-", "--binary", largeProgram(t))
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = pipe.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Process.Signal(syscall.SIGTERM)))
	if got := exitCode(t, cmd); got != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", got, cli.ExitInterrupted)
	}
}

// largeProgram writes a file with the header of a static Linux executable. Even compressed it is larger than any pipe.
func largeProgram(t *testing.T) string {
	t.Helper()
	b := executable.Header(elf.EM_X86_64, elf.ELFOSABI_NONE, false)
	noise := rand.NewChaCha8([32]byte{})
	for range 1 << 18 {
		b = binary.LittleEndian.AppendUint64(b, noise.Uint64())
	}
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}
