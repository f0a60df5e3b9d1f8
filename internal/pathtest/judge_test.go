package pathtest

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

func mapping(seen, as string) translate.Mapping {
	return translate.Mapping{Real: netip.MustParsePrefix(seen), Seen: netip.MustParsePrefix(as)}
}

// sideOf returns a cluster whose pods 10.244.0.0/16 the peer reaches as 10.71.0.0/16, and the reverse.
func sideOf(t *testing.T, name, peer string) *side {
	t.Helper()
	ranges := translate.Side{Pods: []translate.Mapping{mapping("10.244.0.0/16", "10.71.0.0/16")}, External: mapping("10.70.0.0/16", "10.72.0.0/16")}
	translator, err := translate.New(translate.Config{Peer: peer, Remote: ranges, Local: ranges, Internal: netip.MustParsePrefix("10.80.0.0/16")})
	require.NoError(t, err)
	return &side{
		fabric: records.Fabric{Name: name}, translator: translator,
		internal: map[string]netip.Addr{name + "-1": netip.MustParseAddr("10.80.0.1")},
	}
}

// judged returns the results for a pod whose checks pass and a node most of whose checks fail.
func judged(t *testing.T) Result {
	t.Helper()
	a, b := sideOf(t, "a", "b"), sideOf(t, "b", "a")
	at := netip.MustParseAddr
	r := Result{Checks: judge(a, b, report{End{Cluster: "a", Kind: Pod, Node: "a-1"}, at("10.244.0.5"), []probe.Result{
		{Target: "b-1", Source: at("10.71.0.5"), Gap: 130 * time.Millisecond, Skipped: map[probe.Check]string{probe.Ping: "not permitted"}},
		{Target: probe.ClusterIP, Source: at("10.72.0.1"), Gap: 101 * time.Millisecond}, // masqueraded
	}}, time.Second)}
	r.Checks = append(r.Checks, judge(a, b, report{End{Cluster: "a", Kind: Node, Node: "a-1"}, at("10.80.0.1"), []probe.Result{
		{Target: "b-1", Source: at("172.31.1.11"), Gap: 100 * time.Millisecond, Failed: map[probe.Check]string{
			probe.FullSize: "packet of 1380 bytes: no answer within 12s", probe.Oversize: "a packet of 1381 bytes crossed", probe.Connection: "broken 1 times",
		}},
		{Target: probe.NodePort, Failed: map[probe.Check]string{probe.TCP: "no answer within 12s"}},
	}}, time.Second)...)
	r.Checks = append(r.Checks, judge(b, a, report{End{Cluster: "b", Kind: Pod, Node: "b-1"}, at("192.0.2.9"), []probe.Result{
		{Target: "a-1", Source: at("192.0.2.9")},
	}}, 0)...)
	return r
}

func TestJudge(t *testing.T) {
	data, err := json.MarshalIndent(judged(t).Checks, "", "  ")
	require.NoError(t, err)
	golden.Check(t, "checks.json", string(data)+"\n")
}

func TestJUnit(t *testing.T) {
	data, err := judged(t).JUnit()
	require.NoError(t, err)
	golden.Check(t, "junit.xml", string(data))
}
