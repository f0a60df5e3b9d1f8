//go:build lab

package peering

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// programVariable contains the path of the liqoctl that tests of this package run.
const programVariable = "LIQOCTL"

// programTimeout is the default --timeout of a run; programLimit ends a run that hangs. A run takes seconds, and more
// if twelve run in parallel on a busy machine.
const (
	programTimeout = 10 * time.Minute
	programLimit   = 2 * programTimeout
)

// liqoctl is the program with a kubeconfig.
type liqoctl struct{ path, kubeconfig string }

// newLiqoctl writes a kubeconfig with a context for each URL of an API server.
func newLiqoctl(t *testing.T, servers map[string]string) liqoctl {
	t.Helper()
	var clusters, contexts strings.Builder
	for name, server := range servers {
		fmt.Fprintf(&clusters, "- {name: %s, cluster: {server: %q}}\n", name, server)
		fmt.Fprintf(&contexts, "- {name: %s, context: {cluster: %s, user: %s}}\n", name, name, name)
	}
	return liqoctl{path: os.Getenv(programVariable)}.with(t, "clusters:\n"+clusters.String()+"contexts:\n"+contexts.String())
}

// with returns the program with another kubeconfig.
func (l liqoctl) with(t *testing.T, kubeconfig string) liqoctl {
	t.Helper()
	l.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(l.kubeconfig, []byte("apiVersion: v1\nkind: Config\n"+kubeconfig), 0o600))
	return l
}

// run is a running program.
type run struct {
	cmd         *exec.Cmd
	out, stderr bytes.Buffer
	cancel      context.CancelFunc
}

func (l liqoctl) start(t *testing.T, args ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programLimit)
	r := &run{cmd: exec.CommandContext(ctx, l.path, args...), cancel: cancel}
	r.cmd.Env = []string{"KUBECONFIG=" + l.kubeconfig, "HOME=" + t.TempDir(), "LIQOCTL_TIMEOUT=" + programTimeout.String(),
		"LIQOCTL_GATEWAYS=1", "LIQOCTL_REMOTE_GATEWAYS=1"} // fewer writes, each of which is a test case
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.stderr
	require.NoError(t, r.cmd.Start())
	return r
}

// killed is the exit code of a program that was ended by a signal, as in os/exec.
const killed = -1

// wait returns the program's exit code.
func (r *run) wait(t *testing.T) int {
	t.Helper()
	defer r.cancel()
	err := r.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// must runs the program and fails the test unless it exits with 0.
func (l liqoctl) must(t *testing.T, args ...string) string {
	t.Helper()
	r := l.start(t, args...)
	if code := r.wait(t); code != 0 {
		t.Errorf("liqoctl %s: exit code %d\n%s%s", strings.Join(args, " "), code, &r.out, &r.stderr)
	}
	return r.out.String()
}
