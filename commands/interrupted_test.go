package commands

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestInterrupted: the user knows why it ended, and needs no advice.
func TestInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(oneContext), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr strings.Builder
	code := Run(ctx, &cli.Env{Out: t.Output(), Err: &stderr}, []string{"network", "status", "--kubeconfig", file})
	if got := stderr.String(); code != cli.ExitInterrupted || !strings.HasSuffix(got, ": interrupted\n") || strings.Contains(got, "hint:") {
		t.Errorf("exit code %d, stderr %q", code, got)
	}
}

const oneContext = `
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: https://192.0.2.1:6443}}]
contexts: [{name: a, context: {cluster: a}}]
`
