package e2e

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// What the tunnels of a peering may take.
const (
	takenWithin = 4 * time.Second // without packets, after UDP has died
	pauseWithin = 6 * time.Second // of streams, then
	backWithin  = time.Minute     // after UDP has returned
	laterBy     = 6 * time.Second // is a connect without UDP, in the median
	compared    = 10              // connects with and without UDP
	// laterOnce bounds one connect beside another test's lab.
	laterOnce = 20 * time.Second
)

// overWebSocket are flags of a server that a client reaches over UDP and over WebSocket.
var overWebSocket = []string{"--gw-server-websocket"}

// tunnels are two clusters, a and b, between which the router can drop UDP.
type tunnels struct {
	users
	lab      *lab.Lab
	declared spec.Spec
	bed      *faults.Bed
}

// TestTunnels connects clusters between which UDP does not get through: from the beginning, or from some time on. The
// long form goes the ways that companies leave: through an ingress, a proxy, load balancers of TCP. Their ranges do not
// overlap, and load balancers of b have names.
func TestTunnels(t *testing.T) {
	inTurn(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	declared := spec.Spec{Clusters: []spec.Cluster{{Name: "a"}, {
		Name: "b", PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.97.0.0/16"), LoadBalancer: spec.NameBalancer,
	}}}.Complete()
	start := startEmpty
	if !testing.Short() {
		start = startLab // with pods for the tests of every path
	}
	x := tunnels{lab: start(ctx, t, "e2e-tunnels", declared), declared: declared}
	admin := newLiqoctl(ctx, t, x.lab)
	admin.defaults = true
	var err error
	x.bed, err = faults.Probes(ctx, x.lab, admin.path)
	require.NoError(t, err)
	var r remnants
	x.users = users{admin: admin, connector: admin, installer: admin}
	if !testing.Short() {
		r = newRemnants(ctx, t, admin)
		x.users = admin.users(ctx, t, "a", "b")
	}
	x.installer.atOnce(ctx, t, "init", "a", "b")
	overUDP := x.connector.connect(ctx, t, overWebSocket...)
	t.Run("UDP dies under traffic", func(t *testing.T) { x.testUDPDies(ctx, t) })
	t.Run("UDP returns under traffic", func(t *testing.T) { x.testUDPReturns(ctx, t) })
	t.Run("without encryption", func(t *testing.T) { x.testUnencrypted(ctx, t) })
	x.disconnect(ctx, t)
	require.NoError(t, x.lab.BlockUDP(ctx, "a", "b"))
	t.Run("UDP is dropped from the beginning", func(t *testing.T) {
		late := took(x.connector.connect(ctx, t, overWebSocket...)) - took(overUDP)
		t.Logf("connect takes %s longer than over UDP", late)
		if late > laterOnce {
			t.Errorf("connect takes %s longer than over UDP, want %s at most", late, laterOnce)
		}
		x.awaitTransport(ctx, t, faults.WebSocket)
	})
	if testing.Short() {
		return
	}
	x.disconnect(ctx, t)
	t.Run("connect takes little longer", func(t *testing.T) { x.compare(ctx, t) })
	t.Run("nothing but TLS 1.3 crosses", func(t *testing.T) { x.testCapture(ctx, t) })
	t.Run("an ingress", func(t *testing.T) { x.testIngress(ctx, t) })
	t.Run("Traefik", func(t *testing.T) { x.testTraefik(ctx, t) })
	t.Run("a proxy that asks for a password", func(t *testing.T) { x.testProxy(ctx, t) })
	t.Run("a load balancer of TCP", func(t *testing.T) { x.testBalancer(ctx, t) })
	t.Run("a Service of type LoadBalancer", func(t *testing.T) {
		x.connector.connect(ctx, t, append([]string{"--gw-server-service-type", "LoadBalancer"}, overWebSocket...)...)
		x.awaitTransport(ctx, t, faults.WebSocket)
		x.disconnect(ctx, t)
	})
	t.Run("disconnect and reset leave nothing", func(t *testing.T) {
		x.connector.connect(ctx, t, overWebSocket...)
		x.awaitTransport(ctx, t, faults.WebSocket)
		for _, cluster := range []string{"a", "b"} {
			kubectl(ctx, t, x.lab, cluster, "delete", "--ignore-not-found", "-f", x.roles)
		}
		r.testDisconnect(ctx, t)
	})
}

// testUDPDies drops UDP while pods send a packet each ten milliseconds and keep streams open.
func (x tunnels) testUDPDies(ctx context.Context, t *testing.T) {
	s, err := x.bed.Run(ctx, faults.Fault{Name: "UDP dies", Begin: func(ctx context.Context, _ *faults.Bed) (func(context.Context) error, error) {
		return nil, x.lab.BlockUDP(ctx, "a", "b")
	}})
	require.NoError(t, err)
	t.Log(s.Line())
	if s.Sent == 0 || s.Lost == 0 || s.Lost == s.Sent {
		t.Errorf("nothing was measured: %+v", s)
	}
	// The machine itself may have stalled.
	if without, pause := s.Without-s.Stalled, s.Pause-s.Stalled; without > takenWithin || pause > pauseWithin || s.Broken > 0 {
		t.Errorf("%s without packets, want %s at most; longest pause of streams %s, want %s at most; %d broken", without, takenWithin, pause, pauseWithin, s.Broken)
	}
	x.awaitTransport(ctx, t, faults.WebSocket)
}

// testUDPReturns accepts UDP again: the tunnels return to it, and lose no packet.
func (x tunnels) testUDPReturns(ctx context.Context, t *testing.T) {
	var back time.Duration
	s, err := x.bed.Run(ctx, faults.Fault{Name: "UDP returns", Begin: func(ctx context.Context, b *faults.Bed) (func(context.Context) error, error) {
		if err := x.lab.AllowUDP(ctx, "a", "b"); err != nil {
			return nil, err
		}
		since := time.Now()
		err := b.AwaitTransport(ctx, faults.UDP)
		back = time.Since(since)
		return nil, err
	}})
	require.NoError(t, err)
	t.Logf("back after %s: %s", back.Round(time.Second), s.Line())
	if back > backWithin {
		t.Errorf("tunnels return to UDP after %s, want %s at most", back, backWithin)
	}
	if s.Gone > 0 && s.Without > s.Stalled || s.Broken > 0 || s.Sent == 0 {
		t.Errorf("%d of %d packets lost, %d streams broken, want none", s.Gone, s.Sent, s.Broken)
	}
}

// compare connects again and again, with UDP and without.
func (x tunnels) compare(ctx context.Context, t *testing.T) {
	var with, without []time.Duration
	for range compared {
		require.NoError(t, x.lab.AllowUDP(ctx, "a", "b"))
		with = append(with, took(x.connector.connect(ctx, t, overWebSocket...)))
		x.awaitTransport(ctx, t, faults.UDP)
		x.disconnect(ctx, t)
		require.NoError(t, x.lab.BlockUDP(ctx, "a", "b"))
		without = append(without, took(x.connector.connect(ctx, t, overWebSocket...)))
		x.awaitTransport(ctx, t, faults.WebSocket)
		x.disconnect(ctx, t)
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	late := median(without) - median(with)
	t.Logf("connect takes %s longer without UDP: %v, and with it %v", late, without, with)
	if late > laterBy {
		t.Errorf("connect takes %s longer without UDP, want %s at most", late, laterBy)
	}
}

func (x tunnels) disconnect(ctx context.Context, t *testing.T) {
	t.Helper()
	x.connector.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
}

// awaitTransport waits until all tunnels are carried by a transport.
func (x tunnels) awaitTransport(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	require.NoError(t, x.bed.AwaitTransport(ctx, want))
}

// took is the duration of a connect.
func took(c connection) time.Duration { return time.Duration(c.TookSeconds * float64(time.Second)) }
