package network

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestDiagnoseOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want diagnose.Options
	}{
		{nil, diagnose.Options{Cluster: side("a", "liqonet").Cluster}},
		{[]string{"b"}, diagnose.Options{Cluster: side("a", "liqonet").Cluster, Peer: "b"}},
		{[]string{"--remote-context", "b", "--probe", "--image", "i"}, diagnose.Options{
			Cluster: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, Probe: true, Image: "i",
		}},
	} {
		c.want.Timeout = progress.DefaultTimeout
		checkOptions(t, newDiagnose, c.want, c.args...)
	}
	checkRefused(t, newDiagnose, "--probe") // without a remote cluster
}

// diagnosis returns a result with a cause and its consequences in both clusters, a warning, and skipped checks.
func diagnosis() diagnose.Result {
	of := func(id string, layer diagnose.Layer, cluster string, state diagnose.State, seen string) diagnose.Finding {
		f := diagnose.Finding{ID: id, Layer: layer, Cluster: cluster, State: state, Observed: seen}
		if layer != diagnose.API {
			f.Peer = map[string]string{"a": "b", "b": "a"}[cluster]
		}
		if state == diagnose.Failed || state == diagnose.Warning {
			f.Cause, f.Fix = "A firewall drops UDP.", "Allow UDP."
		}
		if state == diagnose.Following {
			f.Follows = "LQ-TUNNEL-HANDSHAKE"
		}
		return f
	}
	return diagnose.Result{Checks: []diagnose.Finding{
		of("LQ-API-REACHABLE", diagnose.API, "a", diagnose.Passed, ""), of("LQ-API-REACHABLE", diagnose.API, "b", diagnose.Passed, ""),
		of("LQ-NODES-DRIFT", diagnose.Nodes, "a", diagnose.Warning, "node a-1: changes restored: 3, last link lqn-gw1"),
		of("LQ-TUNNEL-KEYS", diagnose.Tunnel, "a", diagnose.Skipped, "Secrets: you are not allowed to read them"),
		of("LQ-TUNNEL-HANDSHAKE", diagnose.Tunnel, "a", diagnose.Failed, "tunnel 1-1 to 192.0.2.1:30000: no handshake yet"),
		of("LQ-TUNNEL-HANDSHAKE", diagnose.Tunnel, "b", diagnose.Following, "tunnel 1-1: no handshake yet"),
		of("LQ-TUNNEL-ECHO", diagnose.Tunnel, "a", diagnose.Following, "tunnel 1-1: no handshake yet"),
		of("LQ-PATH-PACKETS", diagnose.Path, "a", diagnose.Skipped, "sent with --probe alone"),
		of("LQ-PATH-SOURCE", diagnose.Path, "a", diagnose.Skipped, "sent with --probe alone"),
	}}
}

// checkAnswer compares an answer, as text and as JSON, with its golden files.
func checkAnswer[R any](t *testing.T, name string, result R, describe func(*strings.Builder, R)) {
	t.Helper()
	golden.Check(t, name+".golden", described(describe, result))
	var out strings.Builder
	require.NoError(t, cli.Answer(&cli.Env{Out: &out}, ui.FormatJSON, result, describe))
	golden.Check(t, name+"-json.golden", out.String())
}

func TestDescribeDiagnosis(t *testing.T) {
	checkAnswer(t, "diagnose", diagnosis(), describeDiagnosis)
	golden.Check(t, "diagnose-wide.golden", described(describeDiagnosisWide, diagnosis()))
	healthy := diagnose.Result{Passed: true, Checks: diagnosis().Checks[:2]}
	assert.Equal(t, "no fault", "a and b: no fault found\nchecks: 2 passed, 0 failed, 0 consequences, 0 warnings, 0 skipped\n", described(describeDiagnosis, healthy))
}

// TestExplain: every check is explained, without a cluster, and what is no check is refused.
func TestExplain(t *testing.T) {
	for _, id := range append(checkIDs(), "lq-tunnel-handshake") {
		var b strings.Builder
		if err := explain(&b, id); err != nil || !strings.HasPrefix(b.String(), "# "+strings.ToUpper(id)+"\n") || !strings.Contains(b.String(), "\n## What to do\n") {
			t.Errorf("%s: %v, %s", id, err, b.String())
		}
	}
	if err := explain(&strings.Builder{}, "LQ-NONE"); cli.ExitCode(t.Context(), err) != cli.ExitUsage {
		t.Errorf("no check: %v", err)
	}
}

// TestFailedChecks: a failed check is an answer and has its own exit code; the JUnit report is written in any case.
func TestFailedChecks(t *testing.T) {
	for _, passed := range []bool{true, false} {
		diagnosis, tested := diagnosis(), tested()
		diagnosis.Passed, tested.Passed = passed, passed
		for failures, c := range map[string]struct {
			run  func(file string) error
			want error
		}{
			`failures="1"`: {func(file string) error { return answered(t, newDiagnose, diagnosis, "--junit", file) }, cli.ErrDiagnosed},
			`failures="3"`: {func(file string) error {
				return answered(t, newTest, tested, "--remote-context", "b", "--junit", file)
			}, cli.ErrPaths},
		} {
			file := filepath.Join(t.TempDir(), "junit.xml")
			err := c.run(file)
			if passed != (err == nil) || !passed && (!errors.Is(err, c.want) || cli.ExitCode(t.Context(), err) != cli.ExitUnhealthy) {
				t.Errorf("passed %v: error %v", passed, err)
			}
			if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), failures) {
				t.Errorf("JUnit report without %s: %v\n%s", failures, err, text)
			}
		}
	}
}
