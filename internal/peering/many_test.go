package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// runMany returns clusters "c0", "c1" and so on, with equal pod CIDRs, which run until the test ends.
func runMany(t *testing.T, n int) (all []*fakecluster.Cluster) {
	for i := range n {
		all = append(all, fakecluster.New(fmt.Sprintf("c%d", i),
			fakecluster.Node{Name: fmt.Sprintf("c%d-1", i), PodCIDR: "10.244.1.0/24", Address: fmt.Sprintf("172.31.%d.11", i)}))
	}
	fakecluster.RunGateways(all...)
	fakecluster.Run(t, all...)
	return all
}

func manyOptions(all []*fakecluster.Cluster, pairs ...[2]int) ManyOptions {
	o := ManyOptions{
		Pairs: pairs, Parallel: 10,
		ConnectOptions: ConnectOptions{
			Local: Side{Gateways: 1}, Timeout: time.Minute, Installation: Installation{Image: "liqonet:1"},
			Options: Options{GatewaySettings: records.GatewaySettings{ServiceType: new(records.NodePort)}},
		},
	}
	for _, c := range all {
		o.Clusters = append(o.Clusters, c.Cluster)
	}
	return o
}

// TestConnectMany connects three clusters with each other. No two peers of a cluster have the same addresses, the plan
// was the same, and a second run changes nothing.
func TestConnectMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := runMany(t, 3)
		o := manyOptions(all, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2})
		planned := fakecluster.Must(t, PlanConnectMany, o)
		intent := planned.Intent()
		fakecluster.ExpectNothingLeft(t, all...)
		// The first pair comes to its reservations last.
		plain := o.Clusters[1]
		o.Clusters[1] = all[1].Intercept("secrets", fakecluster.FirstGateway("c0").KeysName(), func() error {
			<-time.After(3 * time.Second)
			return nil
		})
		got := fakecluster.Must(t, ConnectMany, o)
		for _, p := range got.Peerings {
			if p.Error != "" || p.Result == nil || !got.Changed {
				t.Errorf("%s and %s: %s", p.Local, p.Remote, p.Error)
			}
		}
		for i, c := range all {
			found, err := inventory.Peerings(t.Context(), c.Cluster)
			if err != nil || len(found) != 2 || slices.Contains(found[1].Seen(), found[0].Seen()[0]) || found[0].Number == found[1].Number {
				t.Errorf("%s: %+v, %v", c.Context, found, err)
			}
			for _, p := range found {
				seen := p.Seen()[0].String()
				if !slices.ContainsFunc(intent, func(l plan.Line) bool {
					return l.Subject == "pods of "+p.Name && slices.Contains(l.Clusters, c.Context) && l.New == "10.244.0.0/16 at "+seen
				}) {
					t.Errorf("%s reaches %s at %s, which was not planned: %+v", c.Context, p.Name, seen, intent)
				}
			}
			made := 0
			for _, change := range planned.Clusters[i].Changes {
				if change.Action == kube.Created && (change.Kind == "Deployment" || change.Kind == "Secret") {
					made++
				}
			}
			assert.Equal(t, "planned Deployments and Secrets of "+c.Context, 4, made)
		}
		o.Clusters[1] = plain
		again := fakecluster.Must(t, ConnectMany, o)
		if again.Changed {
			t.Error("the second run changes something")
		}
		o.MTU = new(1300)
		if _, err := ConnectMany(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*plan.DifferenceError)) {
			t.Errorf("another MTU: %v", err)
		}
	})
}

// TestConnectManyFailures: a peering that fails leaves nothing of itself, and the others stay. What cannot be planned
// ends the command before the first write.
func TestConnectManyFailures(t *testing.T) {
	bubble.Run(t, "one peering", func(t *testing.T) {
		all := runMany(t, 3)
		all[2].Set(func() { all[2].NotReportingGateway = records.GatewayID{Peering: "c0", Number: 1} })
		o := manyOptions(all, [2]int{0, 1}, [2]int{0, 2})
		got, err := ConnectMany(t.Context(), o, &fakecluster.Recorder{})
		require.NoError(t, err)
		if got.Peerings[0].Error != "" || !strings.Contains(got.Peerings[1].Error, "verify") {
			t.Errorf("%+v", got.Peerings)
		}
		left, err := inventory.Peerings(t.Context(), all[0].Cluster)
		if err != nil || len(left) != 1 || left[0].Name != "c1" {
			t.Errorf("peerings of c0: %+v, %v", left, err)
		}
	})
	bubble.Run(t, "an installation", func(t *testing.T) {
		all := runMany(t, 3)
		all[2].Set(func() { all[2].PodFailure = "ImagePullBackOff" })
		got, err := ConnectMany(t.Context(), manyOptions(all, [2]int{0, 1}, [2]int{0, 2}), &fakecluster.Recorder{})
		require.NoError(t, err)
		if got.Peerings[0].Error != "" || !strings.Contains(got.Peerings[1].Error, `installation in "c2" failed`) || !strings.Contains(got.Installations[2].Error, "ImagePullBackOff") {
			t.Errorf("%+v", got.Peerings)
		}
	})
	bubble.Run(t, "a plan", func(t *testing.T) {
		all := runMany(t, 3)
		o := manyOptions(all, [2]int{0, 1}, [2]int{2, 2})
		if _, err := ConnectMany(t.Context(), o, &fakecluster.Recorder{}); err == nil {
			t.Error("a cluster is connected with itself")
		}
		fakecluster.ExpectNothingLeft(t, all...)
	})
}

// TestNamesOfMany: clusters whose contexts have the same short name get the longer ones; without any, the command is
// refused, as it is for two contexts of one cluster.
func TestNamesOfMany(t *testing.T) {
	named := func(t *testing.T, contexts ...string) ManyOptions {
		all := runMany(t, len(contexts))
		o := manyOptions(all, [2]int{0, 1}, [2]int{0, 2})
		for i, c := range o.Clusters {
			renamed := *c
			renamed.Context, o.Clusters[i] = contexts[i], &renamed
		}
		return o
	}
	bubble.Run(t, "longer names", func(t *testing.T) {
		o := named(t, "gke_shop_north_prod", "gke_shop_south_prod", "gke_shop_west_edge")
		o.Timeout = 3 * time.Second // the helpers know clusters by other names
		for name, want := range map[int]string{0: "north-prod", 1: "south-prod", 2: "edge"} {
			m := newMany(o, &fakecluster.Recorder{})
			require.NoError(t, m.reach(t.Context()))
			assert.Equal(t, "name", want, m.names[name])
		}
		planned := fakecluster.Must(t, PlanConnectMany, o)
		for _, change := range planned.Clusters[2].Changes {
			if strings.Contains(change.Name, "south") {
				t.Errorf("edge is planned to have %s %s", change.Kind, change.Name)
			}
		}
	})
	for name, contexts := range map[string][]string{"no longer name": {"a/prod", "a-prod", "c"}} {
		bubble.Run(t, name, func(t *testing.T) {
			o := named(t, contexts...)
			_, err := ConnectMany(t.Context(), o, &fakecluster.Recorder{})
			if !errors.As(err, new(*progress.InputError)) || !strings.Contains(err.Error(), "would both have the name") {
				t.Errorf("error %v", err)
			}
		})
	}
	bubble.Run(t, "one cluster", func(t *testing.T) {
		o := manyOptions(runMany(t, 3), [2]int{0, 1}, [2]int{0, 2})
		same := *o.Clusters[1]
		same.Context, o.Clusters[2] = "again", &same
		if _, err := ConnectMany(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*progress.InputError)) || !strings.Contains(err.Error(), "are the same cluster") {
			t.Errorf("error %v", err)
		}
	})
}

// TestInterruptedConnectMany: a run that was killed at any write can be run again.
func TestInterruptedConnectMany(t *testing.T) {
	t.Parallel()
	total := 0
	for n := 0; n <= total; n += 5 { // 0 only counts writes
		bubble.Run(t, fmt.Sprintf("write%03d", n), func(t *testing.T) {
			all := runMany(t, 3)
			o := manyOptions(all, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2})
			o.Keep = true // a killed process does not roll back
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var count func() int
			all[0].Set(func() { all[1].Set(func() { all[2].Set(func() { count = fakecluster.KillAt(n, cancel, all...) }) }) })
			// Runs differ in their number of writes.
			got, err := ConnectMany(ctx, o, &fakecluster.Recorder{})
			failed := err != nil || slices.ContainsFunc(got.Peerings, func(p PairResult) bool { return p.Error != "" })
			if failed != (n > 0 && count() >= n) {
				t.Errorf("failed: %v, with %d writes: %v, %+v", failed, count(), err, got.Peerings)
			}
			total = max(total, count())
			fakecluster.NoKill(all...)
			for _, p := range fakecluster.Must(t, ConnectMany, o).Peerings {
				assert.Equal(t, p.Local+" and "+p.Remote, "", p.Error)
			}
		})
	}
	if total < 90 {
		t.Errorf("only %d writes seen", total)
	}
}

// TestHubOfTen: a hub with ten spokes takes at most three times as long as one peering, in virtual time.
func TestHubOfTen(t *testing.T) {
	took := make(map[int]time.Duration)
	for _, spokes := range []int{1, 10} {
		bubble.Run(t, fmt.Sprint(spokes), func(t *testing.T) {
			all := runMany(t, spokes+1)
			var pairs [][2]int
			for i := range spokes {
				pairs = append(pairs, [2]int{0, i + 1})
			}
			o := manyOptions(all, pairs...)
			got := fakecluster.Must(t, ConnectMany, o)
			for _, p := range got.Peerings {
				assert.Equal(t, p.Remote, "", p.Error)
			}
			took[spokes] = time.Duration(got.Took)
		})
	}
	t.Logf("one peering %s, ten %s", took[1], took[10])
	if took[10] > 3*took[1] {
		t.Errorf("ten peerings take %s, one %s", took[10], took[1])
	}
}
