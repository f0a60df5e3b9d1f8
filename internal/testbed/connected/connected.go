// Package connected makes fake clusters that package peering has connected, for tests of other packages.
package connected

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

// Options are those of a connect with one gateway in each cluster.
func Options(a, b *fakecluster.Cluster) peering.ConnectOptions {
	return peering.ConnectOptions{
		Local: peering.Side{Cluster: a.Cluster, Gateways: 1}, Remote: peering.Side{Cluster: b.Cluster, Gateways: 1},
		Installation: peering.Installation{Image: "liqonet:1"},
		Options:      peering.Options{GatewaySettings: records.GatewaySettings{ServiceType: new(records.NodePort)}},
		Timeout:      time.Minute,
	}
}

// New returns clusters "a" and "b", which are connected and run until the test ends.
func New(t *testing.T) (a, b *fakecluster.Cluster) {
	t.Helper()
	a, b = fakecluster.RunPair(t)
	fakecluster.Must(t, peering.Connect, Options(a, b))
	return a, b
}

// Init installs liqonet. change changes the options; nil changes nothing.
func Init(t *testing.T, c *fakecluster.Cluster, change func(*peering.InitOptions)) (peering.InitResult, error) {
	t.Helper()
	o := peering.InitOptions{
		Side: peering.Side{Cluster: c.Cluster}, Installation: peering.Installation{Image: "liqonet:1"}, Timeout: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	return peering.Init(t.Context(), o, &fakecluster.Recorder{})
}

// Exposing are the options to expose a host of a cluster to peer b.
func Exposing(c *fakecluster.Cluster, host string) expose.Options {
	return expose.Options{Cluster: c.Cluster, Peer: "b", Host: netip.MustParseAddr(host), Timeout: time.Minute}
}

// Second creates the objects of a second installation, in namespace "other".
func Second(t *testing.T, c *fakecluster.Cluster, since time.Time) {
	t.Helper()
	base, err := templates.Base(templates.BaseValues{Namespace: "other", Image: "liqonet:1"})
	require.NoError(t, err)
	for _, o := range base {
		o.SetCreationTimestamp(metav1.NewTime(since))
	}
	_, err = c.Apply(t.Context(), base...)
	require.NoError(t, err)
}
