//go:build linux

package gateway

import (
	"net/netip"
	"testing"
	"time"
	"unsafe"

	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/membership"
)

// setBack returns a time that was read before the clock was set back by some seconds: its monotonic reading is
// unchanged. Package time cannot move one clock alone; the first word of a time has the seconds above 30 bits of
// nanoseconds.
func setBack(t time.Time, seconds uint64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += seconds << 30
	return t
}

// TestClockSetBack checks that a path answered a minute ago is not healthy after the clock was set back.
func TestClockSetBack(t *testing.T) {
	before := setBack(time.Now().Add(-time.Minute), 3600)
	if time.Since(before).Round(time.Second) != time.Minute || time.Until(before.Round(0)).Round(time.Minute) != 59*time.Minute {
		t.Fatalf("%v is not of both clocks", before)
	}
	nodes := newNodePaths(helper.NewMetrics(), "", nil)
	internal := netip.MustParseAddr("10.80.0.7")
	nodes.nodes = []reportedNode{{Node: &records.Node{Name: "n1"}, Internal: internal}}
	nodes.paths[internal] = nodePath{Sender: membership.Sender{Echo: before}, proof: before}
	s := records.Status{TunnelStatus: records.TunnelStatus{LastEcho: publish.Stamp(before)}, Time: publish.Now(), Nodes: nodes.statuses()}
	if silent, _ := health.Missing(&s, []string{"n1"}); len(silent) == 0 {
		t.Errorf("the node is healthy: %v", s.Nodes)
	}
	if state, _ := health.Tunnel(&s, s.TunnelStatus); state != health.Down {
		t.Errorf("the tunnel is %s", state)
	}
}

// TestLastEchoInTheFuture checks that a last echo in the future, from an earlier process with another clock, does not
// make the state healthy, not even once that time is reached.
func TestLastEchoInTheFuture(t *testing.T) {
	for ago, known := range map[time.Duration]bool{time.Minute: true, -time.Minute: false} {
		l := &loop{Helper: Helper{Env: helper.Env{Namespace: sample.Namespace}, ID: sample.FirstGateway("b")}, status: tools.NewStore(tools.MetaNamespaceKeyFunc)}
		s := sample.Status()
		s.LastEcho = time.Now().Add(-ago).UTC().Truncate(time.Millisecond)
		require.NoError(t, l.status.Add(sample.ConfigMap(t, l.ID.StatusName(), s)))
		if got := publish.Stamp(l.lastEcho()); got.IsZero() == known || known && s.LastEcho.Sub(got).Abs() > time.Millisecond {
			t.Errorf("reported %v: taken as %v", s.LastEcho, got)
		}
	}
}
