package network

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestTraceOptions(t *testing.T) {
	want := trace.Options{
		Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, From: "shop/web", To: "10.71.0.5",
		Protocol: trace.UDP, Port: 53, Live: true, Timeout: time.Minute,
	}
	checkOptions(t, newTrace, want, "shop/web", "10.71.0.5", "--remote-context", "b", "--protocol", "UDP", "--port", "53", "--live", "--timeout", "1m")
	checkRefused(t, newTrace, "x y", "x --remote-context b", "x y --remote-context b --protocol sctp")
}

// TestDescribeTrace formats the traces of package trace's tests.
func TestDescribeTrace(t *testing.T) {
	files, err := filepath.Glob("../../internal/inspect/trace/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var r trace.Result
		require.NoError(t, json.Unmarshal(text, &r))
		name := "trace-" + strings.TrimSuffix(filepath.Base(file), ".json")
		golden.Check(t, name+".golden", described(describeTrace, r))
		golden.Check(t, name+"-wide.golden", described(describeTraceWide, r))
	}
}

// TestDescribeLive formats the observations of two packets: one is answered, a foreign table drops the other.
func TestDescribeLive(t *testing.T) {
	pod, seen, there, own := netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("10.72.1.7"), netip.MustParseAddr("10.71.2.5"), netip.MustParseAddr("10.244.2.5")
	start := time.Unix(1700000000, 0)
	at := func(after time.Duration) time.Time { return start.Add(after) }
	live := trace.Live{
		Packet: probe.Flow{Protocol: "tcp", From: netip.AddrPortFrom(pod, 51234), To: netip.AddrPortFrom(there, 5432)},
		Places: []trace.Place{
			{
				Cluster: "a", Kind: trace.Node, Name: "a-1", Route: "route 10.71.0.0/16 table 7600 nexthop 0x4e008001", Out: "lqn-gw32769",
				There: []probe.Sighting{{Time: start, From: pod, To: there, LeftFrom: pod, LeftTo: there, Out: "lqn-gw32769", Chains: []string{"ip liqonet guard"}}},
				Back:  []probe.Sighting{{Time: at(3 * time.Millisecond), From: there, To: pod, LeftFrom: there, LeftTo: pod, In: "lqn-gw32769", Out: "veth1"}},
			},
			{Cluster: "a", Kind: trace.Gateway, Name: "gateway-b-x", Errors: []string{"the pod is gone"}},
			{
				Cluster: "b", Kind: trace.Node, Name: "b-2",
				There: []probe.Sighting{{Time: at(2 * time.Millisecond), From: seen, To: own, LeftFrom: seen, LeftTo: own, In: "lqn-gw32769"}},
			},
		},
		Arrived: new(true), Answered: new(true),
	}
	var b strings.Builder
	describeLive(&b, &live)
	drop := &live.Places[2].There[0]
	drop.LeftFrom, drop.LeftTo, drop.Dropped = netip.Addr{}, netip.Addr{}, "drop by rule 4 of chain strict of table inet fault"
	live.Arrived, live.Answered, live.Last = new(false), new(false), "dropped at node b-2 of b: "+drop.Dropped
	describeLive(&b, &live)
	live.Places[2].There, live.Places[2].Errors = nil, []string{"the pod is gone"}
	live.Arrived, live.Unknown = nil, "node b-2 of b was not asked: the pod is gone"
	live.Last = "seen last at node a-1 of a, which it left by lqn-gw32769"
	describeLive(&b, &live)
	live.Places = live.Places[:1]
	live.Places[0].Detour, live.Places[0].Out = "rule 50 to 10.71.0.0/16 table 999, route 0.0.0.0/0 blackhole table 999", ""
	live.Unknown, live.Last = "", "dropped at node a-1 of a: "+live.Places[0].Detour
	describeLive(&b, &live)
	golden.Check(t, "trace-live.golden", b.String())
}
