package network

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestPathTestOptions(t *testing.T) {
	test := func(args ...string) (o pathtest.Options, err error) {
		err = parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			return newTest(env, local, recorder[pathtest.Options, pathtest.Result](&o))
		}, args...)
		return o, err
	}
	got, err := test("b", "--remote-context", "b", "--image", "i", "--nodes", "3", "--duration", "1m", "--timeout", "5m")
	want := pathtest.Options{
		Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, Peer: "b", Image: "i", Nodes: 3, Hold: time.Minute, Timeout: 5 * time.Minute,
	}
	if diff := cmp.Diff(want, got, sameOptions); diff != "" || !errors.Is(err, errAsked) {
		t.Errorf("%v, options (-want +got):\n%s", err, diff)
	}
	for _, args := range [][]string{{"b"}, {"--remote-context", "b", "--nodes", "0"}, {"--remote-context", "b", "--duration", "0s"}} {
		if _, err := test(args...); err == nil || errors.Is(err, errAsked) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

// tested returns a result with passed, failed and skipped checks.
func tested() pathtest.Result {
	pod, node := pathtest.End{Cluster: "a", Kind: pathtest.Pod, Node: "a-1"}, pathtest.End{Cluster: "a", Kind: pathtest.Node, Node: "a-1"}
	to := func(name string) pathtest.End { return pathtest.End{Cluster: "b", Kind: pathtest.Pod, Node: name} }
	return pathtest.Result{
		Checks: []pathtest.Check{
			{From: pod, To: to("b-2"), Name: "tcp", State: pathtest.Failed, Seen: "no answer within 12s", Expected: "100 kB, unaltered"},
			{From: pod, To: to("b-2"), Name: "udp", State: pathtest.Passed},
			{From: pod, To: to("b-2"), Name: "full-size", State: pathtest.Failed, Seen: "packet of 1380 bytes: no answer", Expected: "an answer"},
			{From: pod, To: to("b-1"), Name: "tcp", State: pathtest.Passed},
			{From: pod, To: to("b-1"), Name: "connection", State: pathtest.Passed, Gap: 120 * time.Millisecond},
			{From: pod, To: pathtest.End{Cluster: "b", Kind: pathtest.ClusterIP}, Name: "tcp", State: pathtest.Passed},
			{From: node, To: to("b-1"), Name: "ping", State: pathtest.Skipped, Seen: "not permitted"},
			{From: node, To: pathtest.End{Cluster: "b", Kind: pathtest.NodePort}, Name: "source", State: pathtest.Failed, Seen: "10.0.0.1", Expected: "10.72.0.1"},
			{From: pathtest.End{Cluster: "b", Kind: pathtest.Pod, Node: "b-1"}, To: pod, Name: "tcp", State: pathtest.Passed},
		},
		Silent: []pathtest.End{{Cluster: "b", Kind: pathtest.Node, Node: "b-3"}},
		Stages: []progress.StageTime{{Name: "nodes", Took: 2 * time.Second}, {Name: "verify", Took: 4 * time.Second}},
	}
}

func TestDescribePaths(t *testing.T) {
	golden.Check(t, "test.golden", describePaths(tested()))
	var out strings.Builder
	require.NoError(t, cli.Answer(&cli.Env{Out: &out}, ui.FormatJSON, tested(), describePaths))
	golden.Check(t, "test-json.golden", out.String())
}

// TestPathTestFailure: a failed check is an answer and has its own exit code; the JUnit report is written in any case.
func TestPathTestFailure(t *testing.T) {
	for _, passed := range []bool{true, false} {
		file := filepath.Join(t.TempDir(), "junit.xml")
		err := parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			return newTest(env, local, func(context.Context, pathtest.Options, progress.Reporter) (pathtest.Result, error) {
				r := tested()
				r.Passed = passed
				return r, nil
			})
		}, "--remote-context", "b", "--junit", file)
		if passed != (err == nil) || !passed && !errors.Is(err, cli.ErrPaths) {
			t.Errorf("passed %v: error %v", passed, err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `failures="3"`) {
			t.Errorf("JUnit report: %v\n%s", err, text)
		}
	}
}

// performed returns a measurement of two pairs of nodes, of which one pair has a connection.
func performed() pathtest.Result {
	figures := probe.Figures{Stream: 1.5e9, Streams: 2e9, P50: 210 * time.Microsecond, P90: 400 * time.Microsecond, P99: 2 * time.Millisecond, Connections: 2500}
	direct := figures
	direct.Stream *= 2
	end := func(cluster, node string) pathtest.End {
		return pathtest.End{Cluster: cluster, Kind: pathtest.Pod, Node: node}
	}
	return pathtest.Result{
		Passed: true, Checks: []pathtest.Check{},
		Performance: []pathtest.Performance{
			{From: end("a", "a-1"), To: end("b", "b-1"), Streams: 8, Tunnel: &figures, Direct: &direct, Ratios: &pathtest.Ratios{Stream: 0.5, Streams: 1, P50: 1, P90: 1, P99: 1, Connections: 1}},
			{From: end("b", `<b-1>"`), To: end("a", "a-1"), Streams: 8, Tunnel: &figures, Unreached: "no answer within 15s"},
		},
		Stages: []progress.StageTime{{Name: "tunnel", Took: 2 * time.Second}, {Name: "direct", Took: 4 * time.Second}},
	}
}

func TestDescribePerformance(t *testing.T) {
	golden.Check(t, "perf.golden", describePaths(performed()))
	var out strings.Builder
	require.NoError(t, cli.Answer(&cli.Env{Out: &out}, ui.FormatJSON, performed(), describePaths))
	golden.Check(t, "perf-json.golden", out.String())
}

func TestPerformanceOptions(t *testing.T) {
	var got pathtest.Options
	test := func(args ...string) error {
		return parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			return newTest(env, local, func(_ context.Context, o pathtest.Options, _ progress.Reporter) (pathtest.Result, error) {
				got = o
				return performed(), nil
			})
		}, append([]string{"--remote-context", "b"}, args...)...)
	}
	if err := test("--perf"); err != nil || got.Streams != 8 || got.Nodes != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := test("--perf", "--streams", "3", "--nodes", "2"); err != nil || got.Streams != 3 || got.Nodes != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, args := range [][]string{
		{"--perf", "--streams", "0"}, {"--perf", "--streams", "65"}, {"--perf", "--duration", "1m"}, {"--perf", "--junit", "x.xml"},
	} {
		if err := test(args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
