package commands

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

	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/steps"
)

func TestPathTestOptions(t *testing.T) {
	test := func(args ...string) (o pathtest.Options, err error) {
		err = parse(t, func(env *Env, local *clusterFlags) *cobra.Command {
			return newNetworkTest(env, local, recorder[pathtest.Options, pathtest.Result](&o))
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

// tested is a result with passed, failed and skipped checks.
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
		Stages: []steps.StageTime{{Name: "nodes", Took: 2 * time.Second}, {Name: "verify", Took: 4 * time.Second}},
	}
}

func TestDescribePaths(t *testing.T) {
	golden(t, "test", describePaths(tested()))
	var out strings.Builder
	if err := answer(&Env{Out: &out}, formatJSON, tested(), describePaths); err != nil {
		t.Fatal(err)
	}
	golden(t, "test-json", out.String())
}

// A check that failed is an answer and an exit code of its own; the JUnit report is written in any case.
func TestPathTestTells(t *testing.T) {
	for _, passed := range []bool{true, false} {
		file := filepath.Join(t.TempDir(), "junit.xml")
		err := parse(t, func(env *Env, local *clusterFlags) *cobra.Command {
			return newNetworkTest(env, local, func(context.Context, pathtest.Options, steps.Reporter) (pathtest.Result, error) {
				r := tested()
				r.Passed = passed
				return r, nil
			})
		}, "--remote-context", "b", "--junit", file)
		if passed != (err == nil) || !passed && !errors.Is(err, errPaths) {
			t.Errorf("passed %v: error %v", passed, err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `failures="3"`) {
			t.Errorf("JUnit report: %v\n%s", err, text)
		}
	}
}
