package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/require"
)

// quiet ignores messages.
func quiet(string) {}

// keepHeld has another run hold the lock of a cluster, and renew it until the test ends.
func keepHeld(t *testing.T, c *kube.Cluster) {
	t.Helper()
	leases := c.Kube.CoordinationV1().Leases(c.Namespace)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: records.LockName, Namespace: c.Namespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("the peer's administrator"), LeaseDurationSeconds: new(int32(15))},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(2 * time.Second):
			}
			lease.Spec.RenewTime = new(metav1.NowMicro())
			if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil && t.Context().Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
}

// hung is an API server that answers requests for the ID of its cluster and for Leases (there are none), and no others.
type hung string

// RoundTrip implements http.RoundTripper.
func (id hung) RoundTrip(q *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case q.URL.Path == "/api/v1/namespaces/kube-system":
		_, _ = fmt.Fprintf(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`, string(id))
	case q.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.WriteString(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	default:
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	return w.Result(), nil
}

// TestPeersLockIsHeld has the administrator of a peer never give back the lock of his cluster, or not answer those who
// ask for it. A run that needs both waits, and meanwhile other runs change this cluster.
func TestPeersLockIsHeld(t *testing.T) {
	for name, hold := range map[string]func(*testing.T, *kube.Cluster){
		"held": keepHeld,
		"no answer": func(t *testing.T, peer *kube.Cluster) {
			id, err := peer.ID(t.Context())
			require.NoError(t, err)
			api, err := kubernetes.NewForConfig(&rest.Config{Host: "http://peer.invalid", Transport: hung(id)})
			require.NoError(t, err)
			peer.Kube = api
		},
	} {
		for order, ids := range map[string][2]string{"own first": {"1", "2"}, "own last": {"2", "1"}} {
			bubble.Run(t, name+", "+order, func(t *testing.T) {
				own, _ := withID(ids[0], new(atomic.Bool))
				peer, _ := withID(ids[1], new(atomic.Bool))
				hold(t, peer)
				ctx, stop := context.WithCancel(t.Context())
				a, b := own, peer
				waiting := kube.NewLocks(&a, &b)
				ended := make(chan error, 1)
				go func() { ended <- waiting.Await(ctx, quiet) }()
				longest := time.Duration(0)
				for range 20 {
					<-time.After(time.Second)
					c := own
					other, begun := kube.NewLocks(&c), time.Now()
					assert.NoError(t, other.Await(t.Context(), quiet))
					longest = max(longest, time.Since(begun))
					other.Release(t.Context())
				}
				t.Logf("other runs waited for %s at most", longest)
				if longest > 15*time.Second {
					t.Errorf("another run waited for %s", longest)
				}
				stop()
				if err := <-ended; err == nil {
					t.Error("the run has a lock that another one holds")
				}
				waiting.Release(t.Context())
			})
		}
	}
}

// TestLocksOfMany has forty runs take two of four clusters' locks each, all at once: none takes a lock away from
// another, and the last has its locks soon after all others have had theirs.
func TestLocksOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs, busy = 40, time.Second
		clusters := make([]*kube.Cluster, 4)
		for i := range clusters {
			clusters[i], _ = withID(string(rune('1'+i)), new(atomic.Bool))
		}
		var holders [4]atomic.Int32
		var all sync.WaitGroup
		begun := time.Now()
		for i := range runs {
			all.Go(func() {
				x, y := i%4, (i+1+i/4%3)%4
				a, b := clusters[x], clusters[y]
				a.Locking.Timeout, b.Locking.Timeout = time.Hour, time.Hour
				locks := kube.NewLocks(&a, &b)
				if err := locks.Await(t.Context(), quiet); err != nil {
					t.Error(err)
					return
				}
				for _, n := range []int{x, y} {
					if holders[n].Add(1) != 1 {
						t.Errorf("two runs have the lock of cluster %d", n)
					}
				}
				<-time.After(busy)
				holders[x].Add(-1)
				holders[y].Add(-1)
				locks.Release(t.Context())
			})
		}
		all.Wait()
		took := time.Since(begun)
		t.Logf("%d runs of %s took %s", runs, busy, took)
		if took > runs*3*busy {
			t.Errorf("%d runs of %s took %s", runs, busy, took)
		}
	})
}
