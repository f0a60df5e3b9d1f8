package network

import (
	"errors"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
)

func TestPathTestOptions(t *testing.T) {
	want := pathtest.Options{
		Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, Peer: "b", Image: "i", Nodes: 3, Hold: time.Minute, Timeout: 5 * time.Minute,
	}
	checkOptions(t, newTest, want, "b", "--remote-context", "b", "--image", "i", "--nodes", "3", "--duration", "1m", "--timeout", "5m")
	checkRefused(t, newTest, "b", "--remote-context b --nodes 0", "--remote-context b --duration 0s")
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
			{From: pod, To: to("b-1"), Name: "connection", State: pathtest.Passed, Gap: seconds.Duration(120 * time.Millisecond)},
			{From: pod, To: pathtest.End{Cluster: "b", Kind: pathtest.ClusterIP}, Name: "tcp", State: pathtest.Passed},
			{From: node, To: to("b-1"), Name: "ping", State: pathtest.Skipped, Seen: "not permitted"},
			{From: node, To: pathtest.End{Cluster: "b", Kind: pathtest.NodePort}, Name: "source", State: pathtest.Failed, Seen: "10.0.0.1", Expected: "10.72.0.1"},
			{From: pathtest.End{Cluster: "b", Kind: pathtest.Pod, Node: "b-1"}, To: pod, Name: "tcp", State: pathtest.Passed},
		},
		Silent: []pathtest.End{{Cluster: "b", Kind: pathtest.Node, Node: "b-3"}},
		Stages: []progress.StageTime{{Name: "nodes", Took: seconds.Duration(2 * time.Second)}, {Name: "verify", Took: seconds.Duration(4 * time.Second)}},
	}
}

func TestDescribePaths(t *testing.T) {
	o := pathtest.Options{Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster}
	checkAnswer(t, "test", tested(), func(b *strings.Builder, r pathtest.Result) { describePaths(b, r, o) })
	golden.Check(t, "test-wide.golden", described(func(b *strings.Builder, r pathtest.Result) { describePathsWide(b, r, o) }, tested()))
	back := tested()
	for i := range back.Checks { // only the direction from b to a fails
		back.Checks[i].State = map[string]pathtest.State{"a": pathtest.Passed, "b": pathtest.Failed}[back.Checks[i].From.Cluster]
	}
	assert.Equal(t, "next command", "liqoctl network trace b-1 a-1 --protocol icmp --live --context b --remote-context a", traceFailed(back.Checks, o))
}

// performed returns a measurement of two pairs of nodes, of which one pair has a connection.
func performed() pathtest.Result {
	figures := probe.Figures{Stream: 1.5e9, Streams: 2e9, P50: 210e-6, P90: 400e-6, P99: 2e-3, Connections: 2500}
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
		Stages: []progress.StageTime{{Name: "tunnel", Took: seconds.Duration(2 * time.Second)}, {Name: "direct", Took: seconds.Duration(4 * time.Second)}},
	}
}

func TestDescribePerformance(t *testing.T) { checkAnswer(t, "perf", performed(), describePerformance) }

func TestPerformanceOptions(t *testing.T) {
	for line, want := range map[string][2]int{"--perf": {8, 0}, "--perf --streams 3 --nodes 2": {3, 2}} {
		got, err := optionsOf(t, newTest, strings.Fields("--remote-context b "+line)...)
		if !errors.Is(err, errAsked) || got.Streams != want[0] || got.Nodes != want[1] {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"--streams 0", "--streams 65", "--duration 1m", "--junit x.xml"} {
		checkRefused(t, newTest, "--remote-context b --perf "+line)
	}
	assert.NoError(t, answered(t, newTest, performed(), "--remote-context", "b", "--perf"))
}
