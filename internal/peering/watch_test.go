package peering

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/cluster"
)

// TestWatchOutlivesRestarts: a watch that has begun goes on where an API server is away for a while, and says so once.
func TestWatchOutlivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		a.install(t)
		var away atomic.Int32 // how many more requests find nobody
		a.kube.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			if away.Add(-1) >= 0 {
				return true, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		shown, said := 0, 0
		err := Watch(ctx, StatusOptions{Side: Side{Cluster: a.Cluster}}, func([]PeeringStatus) error {
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

func TestUnanswered(t *testing.T) {
	reach := func(err error) error { return &cluster.ReachError{Context: "a", Err: err} }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{reach(errors.New("no answer within 10s")), true},
		{reach(errors.New("net/http: TLS handshake timeout")), true},
		{fmt.Errorf("list nodes: %w", context.DeadlineExceeded), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{reach(apierrors.NewUnauthorized("expired")), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil), false},
		{errors.New("no space left"), false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestWatchEnds: at once where a cluster cannot be reached to begin with, and whenever it cannot be shown.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		a.install(t)
		o, full := StatusOptions{Side: Side{Cluster: a.Cluster}}, errors.New("no space left")
		lost := func(err error) { t.Errorf("lost: %v", err) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := Watch(ctx, o, func([]PeeringStatus) error { return full }, lost); !errors.Is(err, full) {
			t.Errorf("error %v", err)
		}
		a.kube.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		})
		if err := Watch(ctx, o, func([]PeeringStatus) error { return nil }, lost); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
}
