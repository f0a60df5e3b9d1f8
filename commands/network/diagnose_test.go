package network

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestDiagnoseOptions(t *testing.T) {
	diagnosed := func(args ...string) (o diagnose.Options, err error) {
		err = parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			return newDiagnose(env, local, recorder[diagnose.Options, diagnose.Result](&o))
		}, args...)
		return o, err
	}
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
		got, err := diagnosed(c.args...)
		if diff := cmp.Diff(c.want, got, sameOptions); diff != "" || !errors.Is(err, errAsked) {
			t.Errorf("%v: %v, options (-want +got):\n%s", c.args, err, diff)
		}
	}
	if _, err := diagnosed("--probe"); err == nil || errors.Is(err, errAsked) {
		t.Errorf("--probe without a remote cluster: error %v", err)
	}
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
		of("LQ-NODES-DRIFT", diagnose.Nodes, "a", diagnose.Warning, "node a-1: restored 3 times, last link lqn-gw1"),
		of("LQ-TUNNEL-KEYS", diagnose.Tunnel, "a", diagnose.Skipped, "Secrets: you are not allowed to read them"),
		of("LQ-TUNNEL-HANDSHAKE", diagnose.Tunnel, "a", diagnose.Failed, "tunnel 1-1 to 192.0.2.1:30000: no handshake yet"),
		of("LQ-TUNNEL-HANDSHAKE", diagnose.Tunnel, "b", diagnose.Following, "tunnel 1-1: no handshake yet"),
		of("LQ-TUNNEL-ECHO", diagnose.Tunnel, "a", diagnose.Following, "tunnel 1-1: no handshake yet"),
		of("LQ-PATH-PACKETS", diagnose.Path, "a", diagnose.Skipped, "sent with --probe alone"),
		of("LQ-PATH-SOURCE", diagnose.Path, "a", diagnose.Skipped, "sent with --probe alone"),
	}}
}

func TestDescribeDiagnosis(t *testing.T) {
	golden.Check(t, "diagnose.golden", describeDiagnosis(diagnosis()))
	var out strings.Builder
	require.NoError(t, cli.Answer(&cli.Env{Out: &out}, ui.FormatJSON, diagnosis(), describeDiagnosis))
	golden.Check(t, "diagnose-json.golden", out.String())
}

// TestDiagnoseFailure: a failed check is an answer and has its own exit code; the JUnit report is written in any case.
func TestDiagnoseFailure(t *testing.T) {
	for _, passed := range []bool{true, false} {
		file := filepath.Join(t.TempDir(), "junit.xml")
		err := parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			return newDiagnose(env, local, func(context.Context, diagnose.Options, progress.Reporter) (diagnose.Result, error) {
				r := diagnosis()
				r.Passed = passed
				return r, nil
			})
		}, "--junit", file)
		if passed != (err == nil) || !passed && cli.ExitCode(t.Context(), err) != cli.ExitUnhealthy {
			t.Errorf("passed %v: error %v", passed, err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `failures="1"`) {
			t.Errorf("JUnit report: %v\n%s", err, text)
		}
	}
}
