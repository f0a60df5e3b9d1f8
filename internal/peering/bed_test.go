package peering

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/templates"
)

// connected returns two connected clusters with helpers, which run until the test ends.
func connected(t *testing.T) (a, b *fakecluster.Cluster) {
	t.Helper()
	a, b = fakecluster.Pair()
	fakecluster.Run(t, a, b)
	if _, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{}); err != nil {
		t.Fatal(err)
	}
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
		Options:      Options{Service: templates.ServiceValues{Type: corev1.ServiceTypeNodePort}},
		Timeout:      time.Minute,
	}
}

func initOptions(c *fakecluster.Cluster) InitOptions {
	return InitOptions{Side: Side{Cluster: c.Cluster}, Installation: Installation{Image: "liqonet:1"}, Timeout: time.Minute}
}
