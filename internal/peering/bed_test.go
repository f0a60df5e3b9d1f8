package peering

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// connected returns two connected clusters with helpers, which run until the test ends.
func connected(t *testing.T) (a, b *fakecluster.Cluster) {
	t.Helper()
	a, b = fakecluster.RunPair(t)
	fakecluster.Must(t, Connect, connectOptions(a, b))
	return a, b
}

func exposing(w *fakecluster.Cluster, host string) expose.Options {
	return expose.Options{Cluster: w.Cluster, Peer: "b", Host: netip.MustParseAddr(host), Timeout: time.Minute}
}

func connectOptions(a, b *fakecluster.Cluster) ConnectOptions {
	o := unchangedOptions(a, b)
	o.Local.Gateways, o.Remote.Gateways = 1, 1
	return o
}

// unchangedOptions returns options that do not set the number of gateways.
func unchangedOptions(a, b *fakecluster.Cluster) ConnectOptions {
	return ConnectOptions{
		Local: Side{Cluster: a.Cluster}, Remote: Side{Cluster: b.Cluster},
		Installation: Installation{Image: "liqonet:1"},
		Options:      Options{GatewaySettings: records.GatewaySettings{ServiceType: new(records.NodePort)}},
		Timeout:      time.Minute,
	}
}

func initOptions(c *fakecluster.Cluster) InitOptions {
	return InitOptions{Side: Side{Cluster: c.Cluster}, Installation: Installation{Image: "liqonet:1"}, Timeout: time.Minute}
}

// changesNothing runs a connect that must not change anything.
func changesNothing(t *testing.T, o ConnectOptions) {
	t.Helper()
	if got := fakecluster.Must(t, Connect, o); got.Changed || len(got.Objects) > 0 {
		t.Errorf("connect changed %v", got.Objects)
	}
}

// steps runs steps of a command, one after the other. It ends with the first error.
func steps(t *testing.T, all ...func(context.Context) (string, error)) error {
	t.Helper()
	for _, step := range all {
		if _, err := step(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// killedAt kills a run at its nth write, and returns the number of writes; 0 kills nothing.
func killedAt(t *testing.T, n int, a, b *fakecluster.Cluster, run func(context.Context) error) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writes func() int
	a.Set(func() { b.Set(func() { writes = fakecluster.KillAt(n, cancel, a, b) }) })
	// Runs differ in their number of writes.
	if err := run(ctx); (err == nil) != (n == 0 || writes() < n) {
		t.Fatalf("in spite of the interruption: %v", err)
	}
	fakecluster.NoKill(a, b)
	return writes()
}
