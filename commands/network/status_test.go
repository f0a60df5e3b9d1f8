package network

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// peerings returns a healthy peering and one without reports.
func peerings() []status.Peering {
	return []status.Peering{
		{
			Peer: "b", Role: records.Client, State: health.Healthy, Nodes: status.NodeCount{Ready: 2, Total: 2}, Overlay: status.Overlay{Kind: records.Geneve, Port: 6091},
			MTU:       status.MTU{Value: 1420, Source: "measured", Gateways: 1460},
			Addresses: []status.AddressRange{{Kind: "pods", Original: pfx("10.244.0.0/16"), ReachedAt: pfx("10.11.0.0/16")}},
			Exposed: []status.ExposedHost{{
				Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1"), ReachedAt: netip.MustParseAddr("10.72.128.1"), Served: true,
			}},
			Gateways: []status.Gateway{{
				Number: 1, State: health.Healthy, Pod: "gateway-b-x", WireGuard: records.Kernel, ReportAge: secondsOf(3 * time.Second), NodesReady: 2,
				Drift: records.Drift{Times: 1, What: "tunnel lqn-tunnel"}, KeyCreated: time.Now().Add(-72 * time.Hour),
				Nodes: []status.NodeState{{Name: "n1", Ready: true, Drift: records.Drift{Times: 2, What: "rule 104 table 7600"}}},
				Tunnels: []status.Tunnel{{
					PeerGateway: 1, State: health.Healthy, Endpoint: "192.0.2.1:30000", HandshakeAge: secondsOf(12 * time.Second), RTT: secondsOf(600 * time.Microsecond),
					RxBytes: 1536, TxBytes: 10, PathMTU: 1460,
				}},
			}},
			Warnings: []string{`chain "ip filter FORWARD" of node n1 drops pod traffic that its rules do not accept, which status cannot see: use connect --allow-forward --update`},
		},
		{
			Peer: "c", Role: records.Server, State: health.Connecting, Reason: "the gateway has not reported yet", Nodes: status.NodeCount{Total: 2},
			MTU:      status.MTU{Value: 1420, Source: "measured"},
			Gateways: []status.Gateway{{Number: 1, State: health.Connecting}},
		},
	}
}

func secondsOf(d time.Duration) *seconds.Duration {
	s := seconds.Duration(d)
	return &s
}

// statusOf runs `network status` on the given peerings.
func statusOf(t *testing.T, all []status.Peering, args ...string) (out string, err error) {
	t.Helper()
	var b, stderr strings.Builder
	err = parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
		env.Out, env.Progress = &b, ui.NewProgress(&stderr, false, false)
		return newStatus(env, local, statusActions{
			once: func(_ context.Context, o status.Options) ([]status.Peering, error) {
				if o.Cluster.Context != "a" || o.Remote != nil && o.Remote.Context != "b" {
					t.Errorf("contexts %+v, %+v", o.Cluster, o.Remote)
				}
				if o.Peer == "absent" {
					return nil, errAsked
				}
				return all, nil
			},
			watch: func(_ context.Context, o status.Options, show func([]status.Peering) error, lost func(error)) error {
				first := all[:1]
				if o.Remote != nil { // with two clusters both are always shown
					first = all
				}
				begun := show(first)
				lost(errors.New("connection refused"))
				if !strings.HasPrefix(stderr.String(), "warning: connection refused\n") {
					t.Errorf("stderr %q", stderr.String())
				}
				return errors.Join(begun, show(all))
			},
		})
	}, args...)
	return b.String(), err
}

func TestStatus(t *testing.T) {
	out, err := statusOf(t, peerings())
	if !errors.Is(err, cli.ErrUnhealthy) {
		t.Errorf("error %v with a peering that is not healthy", err)
	}
	golden.Check(t, "status.golden", out)
	out, _ = statusOf(t, peerings(), "-o", "wide")
	golden.Check(t, "status-wide.golden", out)
	if _, err := statusOf(t, peerings()[:1]); err != nil {
		t.Errorf("error %v, though all is healthy", err)
	}
	if out, err := statusOf(t, nil); err != nil || out != "no peerings\n" {
		t.Errorf("without peerings: %q, %v", out, err)
	}
	if _, err := statusOf(t, peerings(), "absent"); !errors.Is(err, errAsked) {
		t.Errorf("error %v", err)
	}
}

// TestStatusOfGateways: the wide answer has a line for each tunnel of several gateways.
func TestStatusOfGateways(t *testing.T) {
	tunnel := status.Tunnel{
		PeerGateway: 1, State: health.Healthy, Endpoint: "192.0.2.1:30000", HandshakeAge: secondsOf(12 * time.Second), RTT: secondsOf(600 * time.Microsecond), RxBytes: 1536, PathMTU: 1460,
	}
	silent := status.Tunnel{PeerGateway: 2, State: health.Connecting, Endpoint: "192.0.2.1:30008"}
	all := peerings()[:1]
	all[0].State, all[0].Reason = health.Degraded, "gateway 1: tunnel to gateway 2 of the peer: no handshake yet; gateway 2: the gateway has not reported yet"
	all[0].Gateways = []status.Gateway{
		{Number: 1, State: health.Degraded, Pod: "gateway-b-x", Node: "n1", WireGuard: records.Kernel, ReportAge: secondsOf(time.Second), NodesReady: 2, Tunnels: []status.Tunnel{tunnel, silent}},
		{Number: 2, State: health.Connecting},
	}
	out, _ := statusOf(t, all, "-o", "wide")
	golden.Check(t, "status-gateways.golden", out)
	if out, _ := statusOf(t, all); strings.Contains(out, "30008") {
		t.Errorf("the usual table has tunnels:\n%s", out)
	}
}

// TestStatusByWebSocket: a tunnel that is carried by WebSocket is named so.
func TestStatusByWebSocket(t *testing.T) {
	all := peerings()[:1]
	tunnels := []status.Tunnel{{PeerGateway: 1, State: health.Healthy, Transport: records.WebSocket}, {PeerGateway: 2, State: health.Healthy}}
	all[0].Gateways = []status.Gateway{{Number: 1, State: health.Healthy, ReportAge: secondsOf(time.Second), Tunnels: tunnels}}
	for output, want := range map[string]string{"wide": "1 by WebSocket", "tree": "by WebSocket", "mermaid": "by WebSocket", "json": `"transport": "websocket"`} {
		if out, _ := statusOf(t, all, "-o", output); strings.Count(out, want) != 1 {
			t.Errorf("-o %s: want one %q:\n%s", output, want, out)
		}
	}
}

// bothSides returns a peering in both clusters: one is down, with a different MTU and a different CIDR.
func bothSides() []status.Peering {
	local := peerings()[0]
	local.Cluster = "a"
	local.OwnAddresses = []status.AddressRange{{Kind: "pods", Original: pfx("10.1.0.0/16"), ReachedAt: pfx("10.1.0.0/16")}}
	return []status.Peering{local, {
		Cluster: "b", Peer: "a", Role: records.Server, State: health.Down, Reason: "the peer's gateway answered last 8s ago",
		Nodes: status.NodeCount{Total: 3}, MTU: status.MTU{Value: 1300, Source: "set"},
		Gateways: []status.Gateway{{Number: 1, State: health.Down, ReportAge: secondsOf(time.Second), Tunnels: []status.Tunnel{{
			PeerGateway: 1, State: health.Down, HandshakeAge: secondsOf(9 * time.Second), RTT: secondsOf(700 * time.Microsecond), Loss: 1,
		}}}},
		Addresses: []status.AddressRange{{Kind: "pods", Original: pfx("10.1.0.0/16"), ReachedAt: pfx("10.12.0.0/16")}},
	}}
}

func TestStatusOfBothSides(t *testing.T) {
	both := []string{"--remote-context", "b"}
	out, err := statusOf(t, bothSides(), both...)
	if !errors.Is(err, cli.ErrUnhealthy) {
		t.Errorf("error %v", err)
	}
	golden.Check(t, "status-both.golden", out)
	out, _ = statusOf(t, bothSides(), "--remote-context", "b", "-o", "wide")
	golden.Check(t, "status-both-wide.golden", out)
	out, _ = statusOf(t, bothSides(), "--remote-context", "b", "-o", "json")
	var answer statusAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	if len(answer.Peerings) != 2 || answer.Peerings[1].Cluster != "b" || answer.Peerings[0].OwnAddresses[0].ReachedAt != pfx("10.1.0.0/16") {
		t.Errorf("sides in %s", out)
	}
	if len(answer.Disagreements) != 3 || answer.Disagreements[1] != (status.Disagreement{About: "MTU", Local: "1420", Remote: "1300"}) {
		t.Errorf("disagreements %+v", answer.Disagreements)
	}

	agreed := bothSides()
	agreed[1].State, agreed[1].Reason, agreed[1].MTU, agreed[1].Addresses = health.Healthy, "", agreed[0].MTU, agreed[0].OwnAddresses
	if out, err := statusOf(t, agreed, both...); err != nil || strings.Contains(out, "disagree") {
		t.Errorf("both healthy: %v\n%s", err, out)
	}
	if _, err := statusOf(t, agreed, "--remote-context", "b", "--wait"); err != nil {
		t.Errorf("wait with both healthy: %v", err)
	}
	agreed[1].MTU.Value = 1300
	if _, err := statusOf(t, agreed, both...); !errors.Is(err, cli.ErrDisagree) || cli.ExitCode(t.Context(), err) != cli.ExitUnhealthy {
		t.Errorf("both healthy, and not of one MTU: %v", err)
	}
	if _, err := statusOf(t, bothSides(), "--remote-context", "b", "--wait", "--timeout", "1s"); !errors.Is(err, cli.ErrUnhealthy) {
		t.Errorf("wait while the remote side is down: %v", err)
	}
}

// TestStatusDocument is the shape of the answer for programs.
func TestStatusDocument(t *testing.T) {
	all := peerings()
	all[0].Gateways[0].KeyCreated = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	all[1].Findings = health.Together([][]health.Finding{health.Gateway(health.Observation{})})
	out, _ := statusOf(t, all, "-o", "json")
	golden.Check(t, "status-json.golden", out)
}

func TestStatusForPrograms(t *testing.T) {
	out, err := statusOf(t, peerings(), "-o", "json")
	if !errors.Is(err, cli.ErrUnhealthy) {
		t.Errorf("error %v", err)
	}
	var answer statusAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	if got := answer.Peerings[0].Gateways[0].Nodes[0].Drift; got.Times != 2 || got.What != "rule 104 table 7600" {
		t.Errorf("drift of n1: %+v", got)
	}
	if next := answer.Peerings[1].Next; answer.Peerings[0].Next != "" || next != "liqoctl network diagnose c --context a" {
		t.Errorf("next of the one that is not healthy: %q", next)
	}
	if answer.Healthy || len(answer.Peerings) != 2 || answer.Peerings[0].Addresses[0].ReachedAt != pfx("10.11.0.0/16") {
		t.Errorf("answer %s", out)
	}
	out, _ = statusOf(t, peerings(), "-o", "yaml")
	if !strings.Contains(out, "healthy: false\n") || !strings.Contains(out, "reason: the gateway has not reported yet") {
		t.Errorf("answer %s", out)
	}
}

// TestStatusWait: the wait ends with the requested state, which need not be healthy. After a timeout the exit code is
// that of unhealthy.
func TestStatusWait(t *testing.T) {
	if out, err := statusOf(t, peerings()[:1], "--wait"); err != nil || !strings.Contains(out, "healthy") {
		t.Errorf("healthy all the time: %v, %s", err, out)
	}
	if _, err := statusOf(t, peerings()[1:], "--wait", "--for", "connecting"); err != nil {
		t.Errorf("connecting all the time: %v", err)
	}
	out, err := statusOf(t, peerings(), "--wait", "--for", "down", "--timeout", "1s")
	if !errors.Is(err, cli.ErrUnhealthy) || cli.ExitCode(t.Context(), err) != cli.ExitUnhealthy || strings.Count(out, "PEER ") != 1 {
		t.Errorf("never down: %v, %s", err, out)
	}
	for _, args := range [][]string{{"--wait", "--watch"}, {"--wait", "--for", "well"}, {"--for", "down"}, {"--wait", "--timeout", "0s"}} {
		if _, err := statusOf(t, peerings(), args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// TestStatusWaitForUnreachable: a cluster that does not answer does not prolong the wait, and nothing is printed about
// its peerings.
func TestStatusWaitForUnreachable(t *testing.T) {
	silent := func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a request without a time limit")
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	var b strings.Builder
	err := parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
		env.Out = &b
		return newStatus(env, local, statusActions{
			watch: func(ctx context.Context, _ status.Options, _ func([]status.Peering) error, _ func(error)) error {
				_ = silent(ctx)
				return nil // like peering.Watch: the end of its context is no error
			},
		})
	}, "--wait", "--timeout", "100ms", "-o", "json")
	if !errors.Is(err, cli.ErrUnhealthy) || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

// TestStatusOfMany: the state of each peering is in the row of the cluster that sees it. What cannot be read, or
// is with another cluster, is named.
func TestStatusOfMany(t *testing.T) {
	of := func(cluster, peer string, state health.State) status.Peering {
		return status.Peering{Cluster: cluster, Peer: peer, State: state, Reason: map[bool]string{true: "no handshake yet"}[state != health.Healthy]}
	}
	views := map[string][]status.Peering{
		"a": {of("eu", "us", health.Healthy), of("eu", "edge", health.Healthy)},
		"b": {of("us", "eu", health.Healthy), of("us", "ap", health.Down)},
	}
	var b strings.Builder
	run := func(args ...string) error {
		b.Reset()
		return parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			env.Out = &b
			return newStatus(env, local, statusActions{once: func(_ context.Context, o status.Options) ([]status.Peering, error) {
				if views[o.Cluster.Context] == nil {
					return nil, errAsked
				}
				return views[o.Cluster.Context], nil
			}})
		}, args...)
	}
	if err := run("--contexts", "a,b,c"); !errors.Is(err, cli.ErrUnhealthy) {
		t.Errorf("error %v", err)
	}
	golden.Check(t, "status-many.golden", b.String())
	if err := run("--contexts", "a,b,c", "-o", "json"); !errors.Is(err, cli.ErrUnhealthy) || !strings.Contains(b.String(), `"error": "`+errAsked.Error()) {
		t.Errorf("%v: %s", err, b.String())
	}
	views["b"] = views["b"][:1]
	if err := run("--contexts", "a,b"); err != nil {
		t.Errorf("error %v, though all is healthy", err)
	}
	for _, args := range []string{"b", "--watch", "--wait", "--for down", "-o wide", "--user admin"} {
		if err := run(append([]string{"--contexts", "a,b"}, strings.Fields(args)...)...); !errors.As(err, new(*cli.UsageError)) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
