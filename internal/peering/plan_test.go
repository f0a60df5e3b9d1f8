package peering

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// objectsOf returns liqonet's objects in clusters, without the Leases of nodes.
func objectsOf(t *testing.T, clusters ...*fakecluster.Cluster) map[string]kube.Object {
	t.Helper()
	all := make(map[string]kube.Object)
	for _, w := range clusters {
		objects, err := w.List(t.Context(), records.LabelComponent)
		require.NoError(t, err)
		for _, o := range objects {
			if _, lease := o.(*coordinationv1.Lease); !lease {
				_, kind, _ := strings.Cut(fmt.Sprintf("%T", o), ".")
				all[fmt.Sprintf("%s: %s %s", w.Context, kind, o.GetName())] = o
			}
		}
	}
	return all
}

// changesBetween lists the objects that are created, changed and deleted between two states.
func changesBetween(t *testing.T, before, after map[string]kube.Object) (all []string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(before)) {
		now, there := after[key]
		if !there {
			all = append(all, "deleted "+key)
			continue
		}
		fields := kube.Differences(before[key], now)
		id, _ := records.IdentityOf(now.GetName())
		_, cm := now.(*corev1.ConfigMap)
		if written := cm && (id.Component == records.ComponentGateway || id.Component == records.ComponentStatus); len(fields) > 0 && !written {
			all = append(all, "changed "+key)
		}
	}
	for key := range after {
		if before[key] == nil {
			all = append(all, "created "+key)
		}
	}
	slices.Sort(all)
	return all
}

// namesOf lists the objects of a plan in the form of changesBetween.
func namesOf(p plan.Plan) (all []string) {
	for _, c := range p.Clusters {
		for _, change := range c.Changes {
			if change.Namespace != "" && change.Kind != "Lease" {
				all = append(all, fmt.Sprintf("%s %s: %s %s", change.Action, c.Context, change.Kind, change.Name))
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestPlansAreCarriedOut plans and then runs every operation: the plan changes nothing, and the operation makes the
// planned changes.
func TestPlansAreCarriedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		narrow := o
		narrow.Update, narrow.MTU = true, new(1300)
		install := InitOptions{Side: o.Local, Installation: Installation{Image: "liqonet:1"}, Timeout: time.Minute}
		pools := install
		pools.Update, pools.Side.Pools = true, []netip.Prefix{prefix("172.16.0.0/12")}
		host := exposing(a, "198.51.100.7")
		lost := func(ctx context.Context) error {
			_, err := a.Delete(ctx, &corev1.Secret{ObjectMeta: inventory.Meta(a.Namespace, records.PeeringName("b"))})
			return err
		}
		again := narrow
		again.LocalServes = new(true)
		more, fewer := again, again
		more.Local.Gateways, more.Remote.Gateways = 2, 3
		fewer.Local.Gateways, fewer.Remote.Gateways = 1, 2
		for _, s := range []struct {
			name string
			plan func(context.Context) (plan.Plan, error)
			do   func(context.Context) error
			want []string // contained in the plan
			// first is run before the operation; nil: nothing.
			first func(context.Context) error
		}{
			{"init", dryly(PlanInit, install), doing(Init, install), []string{"known after apply", "create DaemonSet", "reserve 10.70.0.0/16"}, nil},
			{"connect", dryly(PlanConnect, o), doing(Connect, o), []string{"create Deployment gateway-b", "create DaemonSet node", "known after apply", "reserve "}, nil},
			{"connect again", dryly(PlanConnect, o), doing(Connect, o), nil, nil},
			{"connect with new keys", dryly(PlanConnect, o), doing(Connect, o), []string{"create Secret peering-b", `=" -> known after apply`}, lost},
			{"connect with another MTU", dryly(PlanConnect, narrow), doing(Connect, narrow), []string{"mtu: 1420 -> 1300"}, nil},
			{"connect with another server", dryly(PlanConnect, again), doing(Connect, again), []string{"create Service gateway-b", "delete Service gateway-a"}, nil},
			{"connect with more gateways", dryly(PlanConnect, more), doing(Connect, more),
				[]string{"create Deployment gateway2-b", "create Secret peering3-a", "create PodDisruptionBudget gateway-b", "gateways[1]"}, nil},
			{"connect with fewer gateways", dryly(PlanConnect, fewer), doing(Connect, fewer),
				[]string{"delete Deployment gateway2-b", "delete Secret peering3-a", "delete PodDisruptionBudget gateway-b"}, nil},
			{"expose", dryly(expose.PlanExpose, host), doing(expose.Expose, host), []string{"reserve 10.70.128.1/32", "exposed: none -> "}, nil},
			{"withdraw", dryly(expose.PlanWithdraw, host), doing(expose.Withdraw, host), []string{"release 10.70.128.1/32"}, nil},
			{"init with other pools", dryly(PlanInit, pools), doing(Init, pools),
				[]string{"change ConfigMap ipam\n    pools: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 -> 172.16.0.0/12\n"}, nil},
			{"disconnect", dryly(removal.PlanDisconnect, removal.DisconnectOptions{Local: o.Local.Cluster, Remote: o.Remote.Cluster, Timeout: time.Minute}),
				doing(removal.Disconnect, removal.DisconnectOptions{Local: o.Local.Cluster, Remote: o.Remote.Cluster, Timeout: time.Minute}), []string{"delete Secret peering-b", "release "}, nil},
			{"reset", dryly(removal.PlanReset, removal.ResetOptions{Cluster: o.Local.Cluster, Image: "liqonet:1", Timeout: time.Minute}), doing(removal.Reset, removal.ResetOptions{Cluster: o.Local.Cluster, Image: "liqonet:1", Timeout: time.Minute}),
				[]string{"delete DaemonSet node", "delete Namespace liqonet"}, nil},
		} {
			if s.first != nil {
				require.NoError(t, s.first(t.Context()))
			}
			before := objectsOf(t, a, b)
			plan, err := s.plan(t.Context())
			if err != nil {
				t.Fatalf("plan of %s: %v", s.name, err)
			}
			if got := changesBetween(t, before, objectsOf(t, a, b)); len(got) > 0 {
				t.Errorf("the plan of %s changed %v", s.name, got)
			}
			var text string
			for _, c := range plan.Clusters {
				text += c.String()
			}
			for _, want := range s.want {
				if !strings.Contains(text, want) {
					t.Errorf("plan of %s: no %q in\n%s", s.name, want, text)
				}
			}
			checkRecords(t, s.name, plan.Clusters[0])
			if err := s.do(t.Context()); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			assert.Equal(t, "changes and plan of "+s.name, changesBetween(t, before, objectsOf(t, a, b)), namesOf(plan))
		}
	})
}

// TestPlanBesideDamagedReport: a report that does not decode, as anyone with a node's token can write, does not prevent
// a plan if it does not prevent the operation.
func TestPlanBesideDamagedReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, Connect, connectOptions(a, b))
		leases, err := inventory.Leases(t.Context(), a.Cluster)
		require.NoError(t, err)
		bad := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: "node-2313", Namespace: a.Namespace, Labels: leases[0].Labels, Annotations: map[string]string{records.AnnotationNode: "["},
		}}
		_, err = a.Kube.CoordinationV1().Leases(a.Namespace).Create(t.Context(), bad, metav1.CreateOptions{})
		require.NoError(t, err)
		plan, err := expose.PlanExpose(t.Context(), exposing(a, "198.51.100.7"), &fakecluster.Recorder{})
		if err != nil || len(plan.Clusters[0].Changes) == 0 || len(plan.Clusters[0].Before.Nodes) != 2 {
			t.Errorf("plan %+v, %v", plan, err)
		}
		fakecluster.Must(t, expose.Expose, exposing(a, "198.51.100.7"))
	})
}

func dryly[O any](do func(context.Context, O, progress.Reporter) (plan.Plan, error), o O) func(context.Context) (plan.Plan, error) {
	return func(ctx context.Context) (plan.Plan, error) { return do(ctx, o, &fakecluster.Recorder{}) }
}

func doing[O, R any](do func(context.Context, O, progress.Reporter) (R, error), o O) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := do(ctx, o, &fakecluster.Recorder{})
		return err
	}
}

// checkRecords checks the records that define kernel states, in the plan of a step.
func checkRecords(t *testing.T, step string, p plan.ClusterPlan) {
	t.Helper()
	mtu := func(s *records.Set) int {
		if s == nil || len(s.Peerings) == 0 {
			return 0
		}
		return s.Peerings[0].MTU
	}
	switch step {
	case "init", "connect":
		if p.After != nil {
			t.Errorf("%s: the records are known: %+v", step, p.After)
		}
	case "connect with another MTU":
		if mtu(&p.Before) != 1420 || mtu(p.After) != 1300 || len(p.Before.Nodes) != 2 {
			t.Errorf("%s: before %+v, after %+v", step, p.Before, p.After)
		}
	case "disconnect":
		if mtu(&p.Before) != 1300 || p.After == nil || len(p.After.Peerings) > 0 || p.After.Fabric == nil {
			t.Errorf("%s: after %+v", step, p.After)
		}
	case "reset":
		if p.After == nil || p.After.Fabric != nil {
			t.Errorf("%s: after %+v", step, p.After)
		}
	}
}
