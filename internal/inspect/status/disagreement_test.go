package status_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// bothSides are the options that look at the peering of two clusters from both.
func bothSides(local, remote *fakecluster.Cluster) status.Options {
	return status.Options{Cluster: local.Cluster, Remote: remote.Cluster}
}

// statusOfBoth returns the two sides of a peering.
func statusOfBoth(t *testing.T, o status.Options) (local, remote status.Peering) {
	t.Helper()
	all, err := status.Read(t.Context(), o)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	return all[0], all[1]
}

func TestStatusOfBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		c := fakecluster.Third()
		fakecluster.Run(t, c)
		fakecluster.Must(t, peering.Connect, connected.Options(a, c))
		local, remote := statusOfBoth(t, bothSides(a, b))
		if local.Cluster != "a" || local.Peer != "b" || remote.Cluster != "b" || remote.Peer != "a" {
			t.Errorf("sides %+v, %+v", local, remote)
		}
		if local.State != health.Healthy || remote.State != health.Healthy || len(local.Addresses) == 0 {
			t.Errorf("%s: %s, %s: %s", local.State, local.Reason, remote.State, remote.Reason)
		}
		if got := status.Disagreements(local, remote); len(got) > 0 {
			t.Errorf("fresh peering: %+v", got)
		}

		b.ChangePeering(t, "a", func(p *records.Peering) { p.MTU = 1300 })
		local, remote = statusOfBoth(t, bothSides(a, b))
		assert.Equal(t, "disagreements", []status.Disagreement{{About: "MTU", Local: "1420", Remote: "1300"}}, status.Disagreements(local, remote))
		local, remote = statusOfBoth(t, bothSides(b, a))
		assert.Equal(t, "disagreements", []status.Disagreement{{About: "MTU", Local: "1300", Remote: "1420"}}, status.Disagreements(local, remote))

		a.ChangePeering(t, "b", func(p *records.Peering) {
			p.Local.PodCIDRs[0].Seen = netip.MustParsePrefix("10.99.0.0/16")
		})
		local, remote = statusOfBoth(t, bothSides(a, b))
		if got := status.Disagreements(local, remote); len(got) != 2 || got[1].About != "CIDRs of a" || !strings.Contains(got[1].Local, "10.99.0.0/16") {
			t.Errorf("a's copy of the CIDRs that b chose differs: %+v", got)
		}

		o := connected.Options(a, b)
		o.Update = true
		fakecluster.Must(t, peering.Connect, o)
		if got := status.Disagreements(statusOfBoth(t, bothSides(a, b))); len(got) > 0 {
			t.Errorf("after connect --update: %+v", got)
		}

		var none *inventory.NoPeeringError
		if _, err := status.Read(t.Context(), bothSides(b, c)); !errors.As(err, &none) || none.Name != "c" {
			t.Errorf("b and c: %v", err)
		}
		if _, err := status.Read(t.Context(), bothSides(a, a)); !errors.As(err, new(*progress.InputError)) {
			t.Errorf("a and a: %v", err)
		}
		other := bothSides(a, b)
		other.Peer = "c"
		if _, err := status.Read(t.Context(), other); !errors.As(err, &none) || none.Name != "c" {
			t.Errorf("a peer that is not the remote cluster: %v", err)
		}
	})
}

// TestStatusOfOneSideLeft: a cluster that has lost its half is listed as down, beside the one that still has it.
func TestStatusOfOneSideLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: b.Cluster, Peer: "a", OneSide: true})
		local, remote := statusOfBoth(t, bothSides(a, b))
		if local.State != health.Healthy || remote.State != health.Down || !strings.Contains(remote.Reason, `in cluster "a" only`) {
			t.Errorf("%s: %s, %s: %s", local.State, local.Reason, remote.State, remote.Reason)
		}
		assert.Equal(t, "disagreements", []status.Disagreement{{About: "state", Local: "healthy", Remote: "down"}}, status.Disagreements(local, remote))
		local, _ = statusOfBoth(t, bothSides(b, a))
		if local.State != health.Down || local.Cluster != "b" || local.Peer != "a" {
			t.Errorf("from b: %+v", local)
		}
	})
}

// TestWatchFollowsBothSides: what changes in the remote cluster alone is shown at once.
func TestWatchFollowsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var changed time.Time
		rewrite := sync.OnceFunc(func() {
			fakecluster.Pause(a, b)
			time.AfterFunc(status.WatchEvery/2, func() {
				changed = time.Now()
				b.ChangePeering(t, "a", func(p *records.Peering) { p.MTU = 1300 })
			})
		})
		err := status.Watch(ctx, bothSides(a, b), func(all []status.Peering) error {
			rewrite()
			if all[1].MTU.Value == 1300 {
				cancel()
			}
			return nil
		}, func(err error) { t.Errorf("lost: %v", err) })
		if took := time.Since(changed); err != nil || took > time.Second {
			t.Errorf("shown after %s, %v", took, err)
		}
	})
}
