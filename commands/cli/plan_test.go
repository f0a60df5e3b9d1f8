package cli

import (
	"testing"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/testbed/golden"
)

// TestDryRunText: what belongs to a line is indented below it.
func TestDryRunText(t *testing.T) {
	golden.Check(t, "dry-run.golden", ui.Visible(DescribeDryRun(PlanAnswer{Clusters: []clusterPlan{
		{
			ClusterPlan: plan.ClusterPlan{Context: "a", Namespace: "liqonet", Changes: []kube.Change{
				{Kind: "ConfigMap", Name: "peering-b", Action: kube.Changed, Fields: []kube.FieldChange{{Path: "mtu", Old: 1420, New: 1300}}},
			}},
			Kernels: []datapath.Change{
				{Node: "a-1", Steps: []string{"~ firewall", "\tflush chain ip liqonet guard", "+ address 10.80.0.7/32 dev lo"}},
				{Gateway: "b", Steps: []string{"~ link lqn-tunnel mtu 1300"}},
			},
		},
		{ClusterPlan: plan.ClusterPlan{Context: "b", Namespace: "liqonet"}, KernelsLater: true},
	}})))
}
