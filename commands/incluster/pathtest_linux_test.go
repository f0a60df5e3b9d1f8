package incluster

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestHelperTestAsks: a client probes according to its flags, and writes the results.
func TestHelperTestAsks(t *testing.T) {
	const closedPort = "127.0.0.1:1"
	file := filepath.Join(t.TempDir(), "report")
	env := &cli.Env{Environ: []string{"NODE_NAME=a-1", "NODE_IP=127.0.0.1"}}
	cmd := newHelperTest(env)
	cmd.SetArgs([]string{"ask", "--service", closedPort, "--node-port", "1", "--mtu", "1380", "--hold", (10 * time.Millisecond).String(), "--from-node", "--report", file})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, cmd.ExecuteContext(ctx))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
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

// TestHelperTestMeasures: a client measures the path to a server with the same token, and writes the figures.
func TestHelperTestMeasures(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	_, at, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	token, ended := rand.Text(), make(chan error, 1)
	run := func(args ...string) error {
		cmd := newHelperTest(&cli.Env{Err: t.Output()})
		cmd.SetArgs(args)
		return cmd.ExecuteContext(ctx)
	}
	go func() { ended <- run("serve", "--meter", "--port", at, "--token", token) }()
	file := filepath.Join(t.TempDir(), "report")
	require.NoError(t, run("ask", "--meter", "127.0.0.1:"+at, "--token", token, "--streams", "2", "--each", "10ms", "--report", file))
	text, err := os.ReadFile(file)
	if m, decoding := probe.DecodeMeasured(string(text)); err != nil || decoding != nil || m.Failed != "" || m.Streams == 0 {
		t.Errorf("%v, %v: %s", err, decoding, text)
	}
	cancel()
	assert.NoError(t, <-ended)
}

// TestHelperTestLeavesForeignPorts: a server whose port is in use is not restarted repeatedly.
func TestHelperTestLeavesForeignPorts(t *testing.T) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer l.Close()
	_, at, _ := net.SplitHostPort(l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var stderr strings.Builder
	cmd := newHelperTest(&cli.Env{Err: &stderr})
	cmd.SetArgs([]string{"serve", "--meter", "--port", at, "--token", rand.Text()})
	if err := cmd.ExecuteContext(ctx); err != nil || ctx.Err() == nil || !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("%v, stderr %q", err, stderr.String())
	}
}
