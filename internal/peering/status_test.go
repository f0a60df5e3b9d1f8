package peering

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		all, err := Status(t.Context(), StatusOptions{Side: Side{Cluster: a.Cluster}})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		got := all[0]
		if got.ReportAge < 0 || got.ReportAge > time.Second {
			t.Errorf("age %s", got.ReportAge)
		}
		got.ReportAge, got.Mappings = 0, nil
		const rtt = 2 * time.Millisecond
		want := PeeringStatus{
			Peer: "b", Role: records.Client, State: health.Healthy, Endpoint: "172.31.2.11:30840", RTT: time.Millisecond,
			NodesReady: 2, NodesTotal: 2, Implementation: records.Kernel, Overlay: records.Geneve, Pod: "gateway-0", MTU: 1420, PathMTU: 1500,
			Nodes: []NodeState{{Name: "a1", Ready: true, ProofRTT: rtt, PathMTU: 1500}, {Name: "a2", Ready: true, ProofRTT: rtt, PathMTU: 1500}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		_, err = Status(t.Context(), StatusOptions{Side: Side{Cluster: b.Cluster}, Peer: "x"})
		var none *NoPeeringError
		if !errors.As(err, &none) || none.Hint() != "it has: a" {
			t.Errorf("error %v", err)
		}
	})
}

func TestStatusWithoutInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		if all, err := Status(t.Context(), StatusOptions{Side: Side{Cluster: a.Cluster}}); err != nil || len(all) != 0 {
			t.Error(all, err)
		}
	})
}

func TestWatchSeesReportsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var states []health.State
		err := Watch(ctx, StatusOptions{Side: Side{Cluster: a.Cluster}}, func(all []PeeringStatus) error {
			a.set(func() { a.deaf = true })
			if state := all[0].State; len(states) == 0 || states[len(states)-1] != state {
				states = append(states, state)
			}
			if len(states) == 2 {
				cancel()
			}
			return nil
		}, func(err error) { t.Errorf("lost: %v", err) })
		if diff := cmp.Diff([]health.State{health.Healthy, health.Unknown}, states); diff != "" || err != nil {
			t.Errorf("%s%v", diff, err)
		}
	})
}
