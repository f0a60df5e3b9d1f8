//go:build linux

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/tunnel"
)

// locationOf returns the ConfigMap of a gateway as written by a pod.
func locationOf(t *testing.T, pod string, e membership.Epoch) *corev1.ConfigMap {
	t.Helper()
	g := sample.Gateway()
	g.Pod, g.Epoch = pod, uint32(e)
	return sample.GatewayMap(t, "b", g)
}

// epochLoop returns the loop of a pod "one", whose API server has a ConfigMap.
func epochLoop(t *testing.T, cm *corev1.ConfigMap) (*loop, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(cm)
	echoes, _ := testEchoes(testView())
	echoes.own.epoch.Store(100)
	l := &loop{
		Helper:   Helper{Env: helper.Env{Client: client, Namespace: sample.Namespace, Log: slog.New(slog.DiscardHandler)}, ID: sample.FirstGateway("b"), Pod: "one"},
		echoes:   echoes,
		location: tools.NewStore(tools.MetaNamespaceKeyFunc),
		wake:     make(chan struct{}, 1),
	}
	require.NoError(t, l.location.Add(cm))
	return l, client
}

// TestSuccessor checks that a pod steps down if the peer has received a later epoch and the API server does not confirm
// that this pod is the gateway's.
func TestSuccessor(t *testing.T) {
	const later = 200
	for _, c := range []struct {
		name    string
		newest  membership.Epoch
		of      string // pod in the API server
		away    bool   // the API server is away
		want    bool
		onceHas bool // the API server is back
	}{
		{name: "a later pod", newest: later, of: "two", want: true, onceHas: true},
		{name: "a later pod, no API server", newest: later, of: "two", away: true, want: true, onceHas: true},
		{name: "the API server names this one", newest: later, of: "one"},
		{name: "no API server", newest: later, of: "one", away: true, want: true},
		{name: "the same pod", newest: 100, of: "two", away: true},
		{name: "an earlier pod", newest: 99, of: "two", away: true},
		{name: "not known", newest: 0, of: "two", away: true},
		{name: "no pod can have it", newest: math.MaxUint32, of: "two", away: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, client := epochLoop(t, locationOf(t, c.of, later))
				var away atomic.Bool
				away.Store(c.away)
				client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return away.Load(), nil, errors.New("no route to host")
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { l.watchSuccessor(ctx); close(ended) }()
				l.echoes.tunnel(1).answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Newest: uint32(c.newest)}})
				synctest.Wait()
				if got := l.echoes.own.outlived.Load(); got != c.want {
					t.Errorf("stepped down: %t, want %t", got, c.want)
				}
				away.Store(false)
				time.Sleep(successorEvery + time.Second) //nolint:forbidigo // synctest's clock
				if got := l.echoes.own.outlived.Load(); got != c.onceHas {
					t.Errorf("stepped down once the API server answers: %t, want %t", got, c.onceHas)
				}
				cancel()
				<-ended
			})
		})
	}
}

// TestSuccessorOfANewProcess checks that a pod steps down although its epoch was not known yet when the watch began,
// and that its epoch stays.
func TestSuccessorOfANewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := epochLoop(t, locationOf(t, "two", 200))
		l.echoes.own.epoch.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go l.watchSuccessor(ctx)
		synctest.Wait()
		l.echoes.own.epoch.Store(100)
		l.echoes.tunnel(1).answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Newest: 200}})
		synctest.Wait()
		if epoch, outlived := l.echoes.own.epoch.Load(), l.echoes.own.outlived.Load(); epoch != 100 || !outlived {
			t.Errorf("%d, outlived %t: want the epoch of this pod, and that there is a later one", epoch, outlived)
		}
		cancel()
		synctest.Wait()
	})
}

// TestStaleClaim checks that a claim that the API server has refuted is not kept: the API server may be away later.
func TestStaleClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, client := epochLoop(t, locationOf(t, "one", 100))
		var away atomic.Bool
		client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("no route to host")
		})
		ctx, cancel := context.WithCancel(t.Context())
		go l.watchSuccessor(ctx)
		for range 2 {
			l.echoes.tunnel(1).answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Newest: 200}})
			synctest.Wait()
		}
		away.Store(true)
		time.Sleep(2 * successorEvery) //nolint:forbidigo // synctest's clock
		synctest.Wait()
		if l.echoes.own.outlived.Load() {
			t.Error("the pod steps down for a claim that was refuted, and was not made again")
		}
		cancel()
		synctest.Wait()
	})
}

// beginEarlier has a gateway's pod begin with an earlier epoch than the recorded one, as after a restart.
func beginEarlier(t *testing.T, l *loop) {
	t.Helper()
	l.Epoch = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(l.Epoch, epochFile), []byte(membership.Epoch(100).String()), 0o600))
}

// TestRestartAfterSteppingDown checks that a pod whose successor is recorded begins without its tunnel.
func TestRestartAfterSteppingDown(t *testing.T) {
	for pod, want := range map[string]bool{"two": true, "one": false} {
		l, _ := epochLoop(t, locationOf(t, pod, 200))
		beginEarlier(t, l)
		l.begin()
		if epoch, outlived := l.echoes.own.epoch.Load(), l.echoes.own.outlived.Load(); epoch != 100 || outlived != want {
			t.Errorf("recorded is pod %s: epoch %d, outlived %t", pod, epoch, outlived)
		}
	}
}

// TestMendedAfterRestart checks that a pod that began without its tunnel, for a record that is mended or emptied before
// its first report, takes its tunnel back: nothing else asks the API server then.
func TestMendedAfterRestart(t *testing.T) {
	for name, emptied := range map[string]bool{"mended": false, "emptied": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, client := epochLoop(t, locationOf(t, "two", 200))
				beginEarlier(t, l)
				l.echoes.own.epoch.Store(0)
				ctx, cancel := context.WithCancel(t.Context())
				go l.watchSuccessor(ctx) // as in Run: it waits for a claim before begin
				synctest.Wait()
				cm := locationOf(t, "one", 100)
				if emptied {
					cm.Data = nil
				}
				l.begin()
				_, err := client.CoreV1().ConfigMaps(sample.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
				require.NoError(t, err)
				require.NoError(t, l.location.Update(cm))
				time.Sleep(3 * successorEvery) //nolint:forbidigo // synctest's clock
				synctest.Wait()
				if l.echoes.own.outlived.Load() {
					t.Error("the pod stays without its tunnel, and does not ask the API server")
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestOnlyTheLatestReports checks that a pod does not overwrite the record of a later one.
func TestOnlyTheLatestReports(t *testing.T) {
	l, _ := epochLoop(t, locationOf(t, "two", 200))
	l.echoes.own.outlived.Store(true)
	if _, err := l.writeRecord(t.Context(), l.ID.Name(), sample.Gateway(), nil); err == nil {
		t.Error("a pod that has stepped down has written")
	}
}

// TestBeginEpoch checks that the epoch of a pod is later than that of the pod before, with any clocks, and outlives its
// processes.
func TestBeginEpoch(t *testing.T) {
	now := membership.Epoch(time.Now().Unix())
	for _, c := range []struct {
		name        string
		recorded    membership.Epoch
		least, most membership.Epoch
	}{
		{"nobody before", 0, now, now + 60},
		{"an earlier pod", 100, now, now + 60},
		{"one whose clock was ahead", now + 3600, now + 3601, now + 3601},
		{"one that no pod can have", math.MaxUint32, now, now + 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := epochLoop(t, locationOf(t, "zero", c.recorded))
			l.Epoch = t.TempDir()
			_, last := l.recorded()
			got := l.ownEpoch(last)
			if got < c.least || got > c.most {
				t.Errorf("epoch %d, want %d to %d", got, c.least, c.most)
			}
			require.NoError(t, l.location.Replace([]any{locationOf(t, "two", got+1000)}, ""))
			_, last = l.recorded()
			if again := l.ownEpoch(last); again != got {
				t.Errorf("epoch %d after a restart, %d before", again, got)
			}
		})
	}
}

// farTunnel is a device that receives its packets from an endpoint.
type farTunnel struct {
	tunnel.Tunnel // nil: other methods are not called
	renew         func(context.Context) error
	from          netip.AddrPort
	renewed       []netip.AddrPort
}

// Stats implements tunnel.Tunnel.
func (f *farTunnel) Stats() (tunnel.Stats, error) { return tunnel.Stats{Endpoint: f.from}, nil }

// MoveTo implements tunnel.Tunnel.
func (f *farTunnel) MoveTo(netip.AddrPort) error { return nil }

// Renew implements tunnel.Tunnel.
func (f *farTunnel) Renew(ctx context.Context, _, _ []netip.Addr) error { return f.renew(ctx) }

// RenewAt implements tunnel.Tunnel.
func (f *farTunnel) RenewAt(a netip.AddrPort) error {
	f.renewed = append(f.renewed, a)
	return nil
}

// TestFarPods checks that the tunnel stays with the latest pod of the peer's gateway, and that a peer cannot make it
// renew continuously.
func TestFarPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := testEchoes(testView())
		first, second := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2")
		device := &farTunnel{from: second}
		e := g.tunnel(1)
		e.device = device
		receive := func(of membership.Epoch) (newest membership.Epoch) {
			c := e.answer(netip.AddrPort{}, echo.Message{Content: echo.Content{Epoch: uint32(of)}})
			synctest.Wait()
			return membership.Epoch(c.Newest)
		}
		pass := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest's clock
		receive(100)
		device.from = first
		for range 20 {
			if newest := receive(50); newest != 100 {
				t.Fatalf("the answer to an earlier pod has epoch %d", newest)
			}
			receive(math.MaxUint32)
			pass(100 * time.Millisecond)
			receive(100)
		}
		if n := len(device.renewed); n != 2 || device.renewed[0] != second {
			t.Errorf("renewed at %v, want %v once a second", device.renewed, second)
		}
		pass(membership.PodSilence)
		if newest := receive(50); newest != 50 {
			t.Errorf("the answer to the only pod left has epoch %d", newest)
		}
		if n := len(device.renewed); n != 2 {
			t.Error("renewed because of the only pod left")
		}
	})
}
