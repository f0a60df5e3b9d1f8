package commands

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/pathtest/probe"
)

// TestHelperTestAsks: a probe asks what its flags say, and writes what it saw.
func TestHelperTestAsks(t *testing.T) {
	const nobody = "127.0.0.1:1"
	file := filepath.Join(t.TempDir(), "report")
	env := &Env{Environ: []string{"NODE_NAME=a-1", "NODE_IP=127.0.0.1"}}
	cmd := newHelperTest(env)
	cmd.SetArgs([]string{"ask", "--service", nobody, "--node-port", "1", "--mtu", "1380", "--hold", (10 * time.Millisecond).String(), "--from-node", "--report", file})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	results, err := probe.Decode(string(text))
	if err != nil || len(results) != 2 || results[0].Target != probe.ClusterIP || results[1].Target != probe.NodePort || len(results[0].Failed) != 2 {
		t.Errorf("%s: %v", text, err)
	}
	cmd.SetArgs([]string{"ask", "--pod", "b-1"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("a pod without an address was taken")
	}
}
