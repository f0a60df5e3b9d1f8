//go:build linux

package gateway

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// gatewayWriters is the part of a gateway's helper that writes its records, without a kernel.
func gatewayWriters(t *testing.T, client kubernetes.Interface, namespace string) *loop {
	t.Helper()
	env := helper.Env{Client: client, Namespace: namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m := cache.New(client)
	l := &loop{Helper: Helper{Env: env, ID: sample.FirstGateway("b")}, echoes: &echoes{}}
	l.newReporters()
	l.setUpStores(m)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	require.NoError(t, m.Run(ctx))
	all.Go(func() { l.locations.Run(ctx) })
	all.Go(func() { l.statuses.Run(ctx) })
	all.Go(func() {
		tick := time.NewTicker(tunnelEvery)
		defer tick.Stop()
		for {
			l.locations.Set(sample.Gateway())
			s := sample.Status()
			s.Time = publish.Now() // as in each report
			l.statuses.Set(report{Status: s})
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return l
}

// gatewaysObjects returns the empty objects that connect creates for a gateway.
func gatewaysObjects(t *testing.T, namespace string) []*corev1.ConfigMap {
	location, status := sample.GatewayMap(t, "b", sample.Gateway()), sample.ConfigMap(t, sample.FirstGateway("b").StatusName(), sample.Status())
	for _, cm := range []*corev1.ConfigMap{location, status} {
		cm.Namespace, cm.Data = namespace, nil
	}
	return []*corev1.ConfigMap{location, status}
}

// TestAlteredGatewayObjects checks that external changes of a gateway's objects or their labels are undone soon.
func TestAlteredGatewayObjects(t *testing.T) {
	t.Parallel()
	healGateway(t, fake.NewClientset(), sample.Namespace, sample.Patience)
}

// healGateway creates the objects of a gateway and alters them in every way: its helper undoes that within a time.
func healGateway(t *testing.T, client kubernetes.Interface, namespace string, within time.Duration) {
	t.Helper()
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, cm := range gatewaysObjects(t, namespace) {
		_, err := maps.Create(t.Context(), cm, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	gatewayWriters(t, client, namespace)
	good := func(name string) bool {
		cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if name == (sample.FirstGateway("b").Name()) {
			_, err = cache.Record[records.Gateway](cm)
		} else {
			_, err = cache.Record[records.Status](cm)
		}
		return err == nil
	}
	for _, name := range []string{sample.FirstGateway("b").Name(), sample.FirstGateway("b").StatusName()} {
		for _, patch := range []string{
			`{"data":null}`, `{"data":{"record":"x"}}`, `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"liqonet.io/component":"fabric"}}}`,
			`{"metadata":{"labels":{"liqonet.io/peering":"c"}}}`,
		} {
			wait.Until(t, name+" before", sample.Patience, func() bool { return good(name) })
			_, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err)
			took := wait.Until(t, name+" after "+patch, within, func() bool { return good(name) })
			t.Logf("%s after %s: %s", name, patch, took.Round(time.Millisecond))
		}
	}
}
