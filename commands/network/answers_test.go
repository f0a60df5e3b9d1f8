package network

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func connection() peering.Connection {
	sideOf := func(name, peer string, pods status.AddressRange) peering.SideResult {
		return peering.SideResult{
			Cluster: peering.ClusterInfo{Context: "admin@" + name, Name: name}, Peering: peer, MTU: 1420,
			Addresses: []status.AddressRange{
				pods, {Kind: "external", Original: pfx("10.70.0.0/16"), ReachedAt: pfx("10.71.0.0/16")},
			},
			Proof: peering.Proof{
				RTT: seconds.Duration(600 * time.Microsecond), Implementation: records.Kernel, Overlay: records.Geneve,
				Nodes: []peering.NodeProof{
					{Name: name + "-1", RTT: seconds.Duration(1300 * time.Microsecond)}, {Name: name + "-2", RTT: seconds.Duration(2 * time.Millisecond)},
				},
			},
		}
	}
	return peering.Connection{
		Local:  sideOf("a", "b", status.AddressRange{Kind: "pods", Original: pfx("10.244.0.0/16"), ReachedAt: pfx("10.11.0.0/16")}),
		Remote: sideOf("b", "a", status.AddressRange{Kind: "pods", Original: pfx("10.244.0.0/16"), ReachedAt: pfx("10.244.0.0/16")}),
		Stages: []progress.StageTime{{Name: "reach", Took: seconds.Duration(300 * time.Millisecond)}, {Name: "proof", Took: seconds.Duration(4 * time.Second)}},
		MTU:    1380,
		Hops: []desired.Hop{
			{Name: "on the links of a", Size: 1500, Fits: 1420, Link: true}, {Name: "on the links of b", Size: 9000, Fits: 8920, Link: true},
			{Name: "from nodes of a to their gateway", Size: 1500, Fits: 1450}, {Name: "from nodes of b to their gateway"},
			{Name: "between the gateways", Size: 1460, Fits: 1380},
		},
		Took:    seconds.Duration(4300 * time.Millisecond),
		Changed: true,
	}
}

// lacking is a connection in which two nodes take no part.
func lacking() peering.Connection {
	c := connection()
	c.Local.Unverified = []peering.UnverifiedNode{{Name: "a-3", Reason: "pod node-x on node a-3 cannot start: CrashLoopBackOff: exit code 1"}}
	c.Remote.Unverified = []peering.UnverifiedNode{{Name: "b-9", Reason: "its helper has not reported"}}
	return c
}

// TestConnectVerbose: -v shows what takes time and where the MTU comes from, also in a terminal.
func TestConnectVerbose(t *testing.T) {
	var out strings.Builder
	result := connection()
	result.Hops[4].Fits = 1420
	result.Hops[4].Size, result.Hops[0].Node = 1500, "a-1"
	for _, mtu := range []int{1420, 1300} {
		result.MTU = mtu
		require.NoError(t, parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
			env.Out, env.Err, env.ErrTerminal, env.Verbose = &out, &out, true, true
			env.Start()
			return newConnect(env, local, func(_ context.Context, _ peering.ConnectOptions, r progress.Reporter) (peering.Connection, error) {
				r.Stage("verify")
				env.Progress.Request("a", 2*time.Millisecond)
				r.Done("verify", "a: 2 of 2 nodes", 1400*time.Millisecond)
				return result, nil
			})
		}, "--context", "a", "--remote-context", "b"))
	}
	golden.Check(t, "connect-verbose.golden", out.String())
}

// TestUnverifiedNodes: what does not take part is an answer and an exit code of its own.
func TestUnverifiedNodes(t *testing.T) {
	for _, c := range []peering.Connection{connection(), lacking()} {
		for name, err := range map[string]error{
			"connect": answered(t, newConnect, c, "--remote-context", "b"),
			"init":    answered(t, newInit, peering.InitResult{Unverified: c.Local.Unverified}),
		} {
			if all := len(c.Local.Unverified) == 0; all != (err == nil) || !all && !errors.Is(err, cli.ErrUnverified) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	var out strings.Builder
	require.NoError(t, cli.Answer(&cli.Env{Out: &out}, "jsonpath={.local.unverifiedNodes[0].name}: {.remote.unverifiedNodes[*].reason}", lacking(), connected("")))
	if out.String() != "a-3: its helper has not reported" {
		t.Error(out.String())
	}
}

// described returns an answer as text.
func described[R any](describe func(*strings.Builder, R), result R) string {
	var b strings.Builder
	describe(&b, result)
	return b.String()
}

// connected is describeConnection with the flags of both clusters.
func connected(again string) func(*strings.Builder, peering.Connection) {
	return func(b *strings.Builder, c peering.Connection) { describeConnection(b, c, again) }
}

// resetOrVerified is describeReset of a reset, or of one that only verifies.
func resetOrVerified(verifyOnly bool) func(*strings.Builder, removal.ResetResult) {
	return func(b *strings.Builder, r removal.ResetResult) { describeReset(b, r, verifyOnly) }
}

func TestAnswers(t *testing.T) {
	const both = "--context a --remote-context b"
	again := connection()
	again.Changed = false
	gone := removal.Removed{
		Context: "a", Peerings: []string{"b"},
		Released: []removal.ReleasedRange{{Range: pfx("10.11.0.0/16"), Use: `peering "b" pods`}},
	}
	stages := []progress.StageTime{{Name: "clean", Took: seconds.Duration(2 * time.Second)}}
	cluster := peering.ClusterInfo{
		Name: "a", PodCIDRs: []netip.Prefix{pfx("10.1.0.0/16"), pfx("10.2.0.0/16")}, ServiceCIDRs: []netip.Prefix{pfx("10.96.0.0/12")},
		ExternalCIDR: pfx("10.70.0.0/16"), InternalCIDR: pfx("10.80.0.0/16"), Overlay: records.VXLAN, MTU: 1500, Nodes: 2,
	}
	golden.Check(t, "connect.golden", described(connected(both), connection()))
	golden.Check(t, "connect-wide.golden", described(func(b *strings.Builder, c peering.Connection) { describeConnectionWide(b, c, both) }, connection()))
	golden.Check(t, "connect-again.golden", described(connected(both), again))
	golden.Check(t, "connect-unverified.golden", described(connected(both), lacking()))
	golden.Check(t, "init.golden", described(describeInstallation, peering.InitResult{Cluster: cluster, Stages: stages, Changed: true}))
	golden.Check(t, "init-again.golden", described(describeInstallation, peering.InitResult{Cluster: cluster, Stages: stages}))
	exposed := expose.Exposure{Peer: "b", Changed: true, ExposedHost: status.ExposedHost{
		Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1"), ReachedAt: netip.MustParseAddr("10.72.128.1"),
	}}
	golden.Check(t, "expose.golden", described(describeExposure, exposed))
	golden.Check(t, "unexpose.golden", described(describeUnexposure, exposed))
	exposed.Changed, exposed.ReachedAt = false, netip.Addr{}
	golden.Check(t, "expose-again.golden", described(describeExposure, exposed))
	golden.Check(t, "unexpose-again.golden", described(describeUnexposure, exposed))
	remains := removal.Remains{
		Objects: []string{"ClusterRole liqonet:liqonet:node"}, Silent: []string{"a-3", "a-4"},
		Nodes: []removal.NodeRemains{{Name: "a-1", Left: []string{"link lqn-gw7 geneve", "nftables table ip liqonet"}}, {Name: "a-2"}},
	}
	nothing := &removal.Remains{Nodes: []removal.NodeRemains{{Name: "a-1"}}}
	golden.Check(t, "reset-verify-only.golden", described(resetOrVerified(true), removal.ResetResult{Remains: &remains}))
	golden.Check(t, "reset-verify-only-nothing.golden", described(resetOrVerified(true), removal.ResetResult{Remains: nothing}))
	golden.Check(t, "disconnect.golden", described(describeDisconnection, removal.Disconnection{Local: &gone, Remote: &removal.Removed{Context: "b"}, Changed: true}))
	golden.Check(t, "disconnect-again.golden", described(describeDisconnection, removal.Disconnection{Local: &removal.Removed{Context: "a"}}))
	golden.Check(t, "reset.golden", described(resetOrVerified(false), removal.ResetResult{Removed: gone, Stages: stages, Changed: true, Remains: nothing}))
	golden.Check(t, "reset-again.golden", described(resetOrVerified(false), removal.ResetResult{Removed: removal.Removed{Context: "a"}}))
}
