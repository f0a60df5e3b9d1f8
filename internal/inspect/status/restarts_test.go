package status_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// TestWatchOutlivesRestarts checks that a watch continues after an API server was away, and reports that once.
func TestWatchOutlivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.Pair()
		install(t, a)
		var away atomic.Int32 // requests that still fail
		a.Fake.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			if away.Add(-1) >= 0 {
				return true, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		shown, said := 0, 0
		err := status.Watch(ctx, status.Options{Cluster: a.Cluster}, func([]status.Peering) error {
			if shown++; shown < 3 {
				away.Store(4)
			} else {
				cancel()
			}
			return nil
		}, func(err error) {
			if said++; !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("lost: %v", err)
			}
		})
		if err != nil || shown != 3 || said != 2 {
			t.Errorf("shown %d times, said lost %d times: %v", shown, said, err)
		}
	})
}

// TestWatchEnds: at once where a cluster cannot be reached to begin with, and whenever it cannot be shown.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.Pair()
		install(t, a)
		o, full := status.Options{Cluster: a.Cluster}, errors.New("no space left")
		lost := func(err error) { t.Errorf("lost: %v", err) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := status.Watch(ctx, o, func([]status.Peering) error { return full }, lost); !errors.Is(err, full) {
			t.Errorf("error %v", err)
		}
		a.Fake.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		})
		if err := status.Watch(ctx, o, func([]status.Peering) error { return nil }, lost); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
}
