//go:build linux

package gateway

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/tunnel"
)

// TestAnsweredAt checks that an endpoint is not reported before a handshake.
func TestAnsweredAt(t *testing.T) {
	s := tunnel.Stats{Endpoint: netip.MustParseAddrPort("192.0.2.7:30000")}
	if got := answeredAt(s); got.IsValid() {
		t.Errorf("never received: %s", got)
	}
	s.Session.Since = sample.Noon
	if got := answeredAt(s); got != s.Endpoint {
		t.Errorf("received: %s", got)
	}
}

// TestMarkUnknown checks that kubectl wait does not take the state of a gateway that has ended as current.
func TestMarkUnknown(t *testing.T) {
	t.Parallel()
	text, err := records.Encode(sample.Status())
	require.NoError(t, err)
	object := sample.ConfigMap(t, sample.FirstGateway("b").StatusName(), sample.Status())
	object.Data[records.StateKey] = string(health.Healthy)
	l := &loop{
		Helper: Helper{ID: sample.FirstGateway("b"), Env: helper.Env{Client: fake.NewClientset(object), Namespace: sample.Namespace, Log: slog.New(slog.DiscardHandler)}},
		echoes: &echoes{}, location: tools.NewStore(tools.MetaNamespaceKeyFunc),
	}
	state := func() (string, string) {
		t.Helper()
		cm, err := l.Client.CoreV1().ConfigMaps(sample.Namespace).Get(t.Context(), object.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return cm.Data[records.StateKey], cm.Data[records.DataKey]
	}
	l.markUnknown(t.Context())
	if s, _ := state(); s != string(health.Healthy) {
		t.Errorf("a gateway that has served nothing says %q", s)
	}
	l.served.Store(&view{})
	require.NoError(t, l.location.Add(locationOf(t, "next", 1)))
	l.markUnknown(t.Context())
	if s, _ := state(); s != string(health.Healthy) {
		t.Errorf("a gateway whose next pod reports says %q", s)
	}
	l.Pod = "next"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.markUnknown(ended)
	if s, record := state(); s != string(health.Unknown) || record != text {
		t.Errorf("state %q, record %q", s, record)
	}
}

// TestStateEvents checks that a gateway reports changes of the state, except those of its first seconds.
func TestStateEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &loop{Helper: Helper{ID: sample.FirstGateway("b"), Env: helper.Env{Log: slog.New(slog.DiscardHandler)}}}
		status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: l.ID.StatusName(), Namespace: sample.Namespace, UID: "status"}}
		client := fake.NewClientset(status)
		l.Client, l.Namespace = client, sample.Namespace
		l.events = l.NewEvents("", "", "n", 10, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		go l.events.Run(ctx)
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, action := range client.Actions() {
				if create, ok := action.(clienttesting.CreateAction); ok {
					got = append(got, create.GetObject().(*corev1.Event).Message)
				}
			}
			assert.Equal(t, "events", want, got)
		}
		for _, s := range []health.State{health.Connecting, health.Down, health.Degraded, health.Healthy, health.Healthy} {
			l.reportState(s, "")
		}
		expect("healthy, was connecting")
		l.reportState(health.Down, "settling")
		expect("healthy, was connecting")
		time.Sleep(settling) //nolint:forbidigo // synctest's clock
		l.reportState(health.Down, "no echo")
		l.reportState(health.Down, "no echo since longer")
		expect("healthy, was connecting", "down, was healthy: no echo")
		cancel()
	})
}
