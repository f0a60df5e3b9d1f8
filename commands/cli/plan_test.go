package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/templates"
)

// planOf returns the plan of an operation.
func planOf[O any](t *testing.T, do func(context.Context, O, progress.Reporter) (plan.Plan, error), o O) PlanAnswer {
	t.Helper()
	return AnswerOf(fakecluster.Must(t, do, o))
}

// TestDryRuns: the plan of each command names what changes for users, in lines of at most 80 characters.
func TestDryRuns(t *testing.T) {
	var b strings.Builder
	show := func(caption string, p PlanAnswer) {
		b.WriteString("# " + caption + "\n" + ui.Visible(DescribeDryRun(p, false)) + "\n")
	}
	synctest.Test(t, func(t *testing.T) {
		eu, us := fakecluster.RunPair(t)
		o := connected.Options(eu, us)
		install := peering.InitOptions{Side: o.Local, Installation: o.Installation, Timeout: time.Minute}
		show("init", planOf(t, peering.PlanInit, install))
		show("connect", planOf(t, peering.PlanConnect, o))
		fakecluster.Must(t, peering.Connect, o)
		show("connect again", planOf(t, peering.PlanConnect, o))

		o.Update, o.Local.Gateways = true, 2
		show("connect with another gateway", planOf(t, peering.PlanConnect, o))
		fakecluster.Must(t, peering.Connect, o)
		other := o
		other.MTU, other.GatewayMode, other.Implementation = new(1300), new(records.ActiveStandby), new(records.Userspace)
		show("connect with another MTU, mode and implementation", planOf(t, peering.PlanConnect, other))
		other = o
		other.LocalServes, other.Image, other.Pods = new(true), "liqonet:2", templates.Pods{GatewayNodeSelector: map[string]string{"disk": "fast"}}
		show("connect with another server, image and nodes for gateways", planOf(t, peering.PlanConnect, other))
		other.Update = false
		_, err := peering.Connect(t.Context(), other, &fakecluster.Recorder{})
		assert.Equal(t, "exit code", ExitFailure, ExitCode(t.Context(), err))
		b.WriteString("# the same without --update\n" + strings.ReplaceAll(err.Error(), "\n", "\n  ") + "\n\n")

		show("expose", planOf(t, expose.PlanExpose, connected.Exposing(eu, "198.51.100.7")))
		fakecluster.Must(t, expose.Expose, connected.Exposing(eu, "198.51.100.7"))
		show("unexpose", planOf(t, expose.PlanWithdraw, connected.Exposing(eu, "198.51.100.7")))
		show("rotate-keys", planOf(t, peering.PlanRotateKeys, peering.RotateOptions{Local: eu.Cluster, Remote: us.Cluster, Timeout: 10 * time.Minute}))
		show("disconnect", planOf(t, removal.PlanDisconnect, removal.DisconnectOptions{Local: eu.Cluster, Remote: us.Cluster, Timeout: time.Minute}))
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: eu.Cluster, Remote: us.Cluster, Timeout: time.Minute})
		show("reset", planOf(t, removal.PlanReset, removal.ResetOptions{Cluster: eu.Cluster, Image: "liqonet:1", Timeout: time.Minute}))
	})
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
	golden.Check(t, "dry-runs.golden", b.String())
}

// TestWideDryRun: objects, fields and kernels follow; what belongs to a line is indented below it.
func TestWideDryRun(t *testing.T) {
	p := plan.Plan{Clusters: []plan.ClusterPlan{
		{Context: "a", Namespace: "liqonet", Changes: []kube.Change{
			{Kind: "ConfigMap", Name: "peering-b", Action: kube.Changed, Fields: []kube.FieldChange{{Path: "mtu", Old: 1420, New: 1300}}},
		}},
		{Context: "b", Namespace: "liqonet"},
	}}
	a := AnswerOf(p)
	a.Clusters[0].KernelsLater = false
	a.Clusters[0].Kernels = []datapath.Change{
		{Node: "a-1", Steps: []string{"~ firewall", "\tflush chain ip liqonet guard", "+ address 10.80.0.7/32 dev lo"}},
		{Gateway: "b", Steps: []string{"~ link lqn-tunnel mtu 1300"}},
	}
	golden.Check(t, "dry-run-wide.golden", ui.Visible(DescribeDryRun(a, true)))
}
