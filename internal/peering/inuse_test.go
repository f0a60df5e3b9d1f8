package peering_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	coordinationv1 "k8s.io/api/coordination/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// otherPods are clusters whose ranges do not collide: but for what is in use, addresses stay as they are.
func otherPods() (a, b *fakecluster.Cluster) {
	a, _ = fakecluster.Pair()
	b = fakecluster.New("b",
		fakecluster.Node{Name: "b1", PodCIDR: "10.12.1.0/24", Address: "172.31.2.11"},
		fakecluster.Node{Name: "b2", PodCIDR: "10.12.2.0/24", Address: "172.31.2.12"})
	fakecluster.RunGateways(a, b)
	return a, b
}

// TestRangesInUseAreAvoided: neither a peer nor the cluster itself is given what the cluster's API server or its nodes
// use.
func TestRangesInUseAreAvoided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server        string   // address of the API server of a; "": not known
		node          []string // what a node of a uses
		pods          string   // of b, as a reaches them
		own           string   // internal CIDR of a
		noted, warned string
		installed     bool // nodes report already
	}{
		"nothing":                       {pods: "10.12.0.0/16", own: "10.80.0.0/16"},
		"the API server is among pods":  {server: "10.12.9.9", pods: "10.71.0.0/16", own: "10.80.0.0/16", noted: "10.12.9.9/32 (API server)"},
		"the API server is elsewhere":   {server: "10.13.0.1", pods: "10.12.0.0/16", own: "10.80.0.0/16"},
		"in the default internal CIDR":  {server: "10.80.3.3", pods: "10.12.0.0/16", own: "10.71.0.0/16"},
		"a node has a route":            {node: []string{"10.12.3.0/24 route"}, pods: "10.71.0.0/16", own: "10.80.0.0/16", noted: "10.12.3.0/24 (route of node a1)"},
		"a node has the address":        {node: []string{"10.12.3.4/32 address"}, pods: "10.71.0.0/16", own: "10.80.0.0/16", noted: "10.12.3.4/32 (address of node a1)"},
		"other free ranges are used":    {node: []string{"10.12.3.0/24 route", "10.13.0.0/16 route"}, pods: "10.71.0.0/16", own: "10.80.0.0/16"},
		"a route that covers all pools": {node: []string{"10.0.0.0/8 route"}, pods: "10.12.0.0/16", own: "10.80.0.0/16", warned: "10.0.0.0/8 (route of node a1)"},
		"in its own pods":               {node: []string{"10.244.7.0/24 route", "10.96.0.10/32 address"}, pods: "10.12.0.0/16", own: "10.80.0.0/16"},
		"what the installation knows":   {node: []string{"10.12.3.0/24 route"}, pods: "10.71.0.0/16", own: "10.80.0.0/16", installed: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := otherPods()
			if c.server != "" {
				a.AddAPIServer(t, c.server)
			}
			a.ReportUsed("a1", c.node...)
			fakecluster.Run(t, a, b)
			if c.installed {
				_, err := connected.Init(t, a, nil)
				require.NoError(t, err)
			}
			r := &fakecluster.Recorder{}
			_, err := peering.Connect(t.Context(), connected.Options(a, b), r)
			require.NoError(t, err)
			seen := a.Peering(t).Peer.PodCIDRs[0].Seen
			if want := netip.MustParsePrefix(c.pods); !want.Contains(seen.Addr()) || seen.Bits() != 16 {
				t.Errorf("pods of b are seen as %s, want within %s", seen, c.pods)
			}
			fabric, err := inventory.Fabric(t.Context(), a.Cluster)
			if err != nil || fabric.InternalCIDR() != netip.MustParsePrefix(c.own) {
				t.Errorf("internal CIDR %s, want %s, %v", fabric.InternalCIDR(), c.own, err)
			}
			if seen := b.Peering(t).Peer.PodCIDRs[0]; !seen.Identity() {
				t.Errorf("in b, where nothing is in use, pods of a are seen as %s", seen.Seen)
			}
			said := r.Output()
			if !strings.Contains(said, c.noted) || !strings.Contains(said, c.warned) {
				t.Errorf("want a note of %q and %q in\n%s", c.noted, c.warned, said)
			}
			// Only what is held is kept: what is in use changes from day to day.
			registry, err := inventory.Reservations(t.Context(), a.Cluster)
			if err != nil || len(registry.Held(ipam.Cluster, ipam.OutsideHost)) > 0 {
				t.Errorf("reservations: %v, %v", registry.Held(ipam.Cluster, ipam.OutsideHost), err)
			}
			if again, err := peering.Connect(t.Context(), connected.Options(a, b), &fakecluster.Recorder{}); err != nil || again.Changed {
				t.Errorf("again: changed %v, %v", again.Changed, err)
			}
		})
	}
}

// TestRangesInUseAreRefused checks that ranges in use are refused, with nothing left: requested ones, and those that
// nodes report only after the cluster's own ranges were chosen.
func TestRangesInUseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare    func(t *testing.T, a *fakecluster.Cluster, o *peering.ConnectOptions)
		want, hint string
		none       bool // no free range
	}{
		"an internal CIDR with the API server in it": {
			prepare: func(t *testing.T, a *fakecluster.Cluster, o *peering.ConnectOptions) {
				a.AddAPIServer(t, "10.99.0.9")
				o.Local.InternalCIDR = netip.MustParsePrefix("10.99.0.0/16")
			},
			want: "10.99.0.0/16 as internal CIDR: 10.99.0.9/32 (API server) is in use", hint: "use another range",
		},
		"the default internal CIDR with a node's route in it": {
			prepare: func(_ *testing.T, a *fakecluster.Cluster, _ *peering.ConnectOptions) {
				a.ReportUsed("a1", "10.80.3.0/24 route")
			},
			want: "10.80.0.0/16 as internal CIDR: 10.80.3.0/24 (route of node a1) is in use", hint: "--internal-cidr",
		},
		"the default external CIDR of the remote cluster": {
			prepare: func(_ *testing.T, a *fakecluster.Cluster, o *peering.ConnectOptions) {
				a.ReportUsed("a1", "10.70.3.0/24 route")
				o.Local, o.Remote = o.Remote, o.Local
				o.Remote.Overrides.FlagPrefix = "remote-"
			},
			want: "10.70.0.0/16 as external CIDR: 10.70.3.0/24 (route of node a1) is in use", hint: "--remote-external-cidr",
		},
		"no range is left": {
			prepare: func(_ *testing.T, a *fakecluster.Cluster, o *peering.ConnectOptions) {
				a.ReportUsed("a1", "10.12.0.0/16 route", "10.13.0.0/16 route")
				o.Local.Pools = []netip.Prefix{netip.MustParsePrefix("10.13.0.0/16")}
			},
			want: "no free addresses", hint: "2 ranges in use around the cluster are avoided", none: true,
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := otherPods()
			o := connected.Options(a, b)
			c.prepare(t, a, &o)
			fakecluster.Run(t, a, b)
			_, err := peering.Connect(t.Context(), o, &fakecluster.Recorder{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint.Of(err), c.hint) {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
			if errors.Is(err, ipam.ErrNoneFree) != c.none {
				t.Errorf("none free: %v", !c.none)
			}
			fakecluster.ExpectNothingLeft(t, a, b)
		})
	}
}

// TestPlanNamesUndetected checks that the plan of a new peering lists the ranges in use that cannot be detected.
func TestPlanNamesUndetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connected.Options(a, b)
		o.Remote.Overrides.FlagPrefix = "remote-"
		notes := func() string {
			r := &fakecluster.Recorder{}
			_, err := peering.PlanConnect(t.Context(), o, r)
			require.NoError(t, err)
			return r.Output()
		}
		said := notes()
		for _, want := range []string{`cluster "a": networks behind`, `cluster "b": networks behind`, "ranges with --reserve", "ranges with --remote-reserve"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		fakecluster.Must(t, peering.Connect, o)
		if said := notes(); strings.Contains(said, "not detected") {
			t.Errorf("with the peering:\n%s", said)
		}
	})
}

// TestRangesComeIntoUse checks that an existing peering keeps its addresses, with a warning.
func TestRangesComeIntoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := otherPods()
		fakecluster.Run(t, a, b)
		fakecluster.Must(t, peering.Connect, connected.Options(a, b))
		before := fakecluster.Contents(t, a.Cluster)
		a.ReportUsed("a2", "10.12.3.0/24 route", "10.80.9.9/32 address")
		awaitSurroundings(t, a)
		r := &fakecluster.Recorder{}
		got, err := peering.Connect(t.Context(), connected.Options(a, b), r)
		if err != nil || got.Changed {
			t.Errorf("changed %v, %v", got.Changed, err)
		}
		said := r.Output()
		for _, want := range []string{
			`10.12.3.0/24 (route of node a2) is in use, and 10.12.0.0/16 leads to peering "b"`,
			"10.80.9.9/32 (address of node a2) is in use, and 10.80.0.0/16 is the internal CIDR",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		if after := fakecluster.Contents(t, a.Cluster); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Error("something was changed")
		}
	})
}

// awaitSurroundings waits until a node has reported what it uses.
func awaitSurroundings(t *testing.T, w *fakecluster.Cluster) {
	t.Helper()
	err := kube.Wait(t.Context(), w.Cluster, kube.Labelled(inventory.Selector(records.ComponentNode)), "a report", func(leases []*coordinationv1.Lease) (string, error) {
		reports, err := inventory.Reports(leases)
		if slices.ContainsFunc(reports, func(n records.Node) bool { return !n.Surroundings.IsZero() }) {
			return "", nil
		}
		return "none", err
	})
	require.NoError(t, err)
}
