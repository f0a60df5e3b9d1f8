// Package process runs parts of a test or of a measurement, such as helpers, as processes in network namespaces: a
// helper works in the namespace of its process. The processes execute the program of their parent, which calls Main.
package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// variable in the environment has the job of a child, as JSON.
const variable = "LIQONET_TEST_JOB"

// Main executes the job of this process and exits, if Command made the process; otherwise it returns. Programs call it
// first. The context of run ends with SIGTERM.
func Main[J any](run func(ctx context.Context, job J) error) {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	var job J
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = run(ctx, job)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:forbidigo // this is the main function of a child
	}
	os.Exit(0) //nolint:forbidigo // as above
}

// WithParent returns a context that ends with this process's input, as it does when its parent stops it or ends.
func WithParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}

// Command returns the command that executes a job in a namespace.
func Command(ctx context.Context, ns netns.Handle, job any) (*exec.Cmd, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := ns.Command(ctx, self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd, nil
}

// Handle is a running child.
type Handle struct {
	PID int
	Out io.Reader // the child's output

	command *exec.Cmd
	input   io.Closer
	wait    func() error
	log     log
}

// Open starts a child in a namespace.
func Open(ns netns.Handle, job any) (*Handle, error) {
	cmd, err := Command(context.Background(), ns, job)
	if err != nil {
		return nil, err
	}
	h := &Handle{command: cmd, wait: sync.OnceValue(cmd.Wait)}
	cmd.Stderr = &h.log
	if h.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if h.Out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h.PID = cmd.Process.Pid
	return h, nil
}

// Log returns what the child has logged so far.
func (h *Handle) Log() string { return h.log.String() }

// Logged returns how often the child has logged a text.
func (h *Handle) Logged(text string) int { return strings.Count(h.Log(), text) }

// Close ends the child's input and waits for its end. The error includes its log.
func (h *Handle) Close() error {
	_ = h.input.Close()
	if err := h.wait(); err != nil {
		return fmt.Errorf("process in a namespace: %w\n%s", err, lastLines(h.Log()))
	}
	return nil
}

// Kill ends the child like a kernel that is out of memory: the child cannot clean up. A child that has ended already is
// no error.
func (h *Handle) Kill() {
	_ = h.command.Process.Kill()
	_ = h.wait()
}

// Process is a child that lives no longer than a test. Errors are errors of the test.
type Process struct {
	*Handle
	t testing.TB
}

// Start starts a child until the test ends. Its log is shown, with the name, if the test fails.
func Start(t testing.TB, ns netns.Namespace, name string, job any) *Process {
	t.Helper()
	h, err := Open(ns.Handle, job)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.Kill()
		if t.Failed() {
			t.Logf("log of %s, its end:\n%s", name, lastLines(h.Log()))
		}
	})
	return &Process{h, t}
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	assert.NoError(p.t, p.command.Process.Signal(s))
}

// Wait waits for the child's end, after a signal.
func (p *Process) Wait() {
	p.t.Helper()
	assert.NoError(p.t, p.wait())
}

// Stop ends the child's input and waits for its end.
func (p *Process) Stop() {
	p.t.Helper()
	assert.NoError(p.t, p.Close())
}

// log is the output of a process, which others read concurrently.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns the output so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lastLines returns the end of a log, or with -v all of it: CI shows little output of a failed test.
func lastLines(log string) string {
	const most, longest = 30, 400
	if testing.Testing() && testing.Verbose() {
		return log
	}
	lines := strings.Split(log, "\n")
	lines = lines[max(0, len(lines)-most):]
	for i, line := range lines {
		lines[i] = line[:min(longest, len(line))]
	}
	return strings.Join(lines, "\n")
}
