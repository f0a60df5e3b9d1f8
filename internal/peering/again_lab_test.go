//go:build lab

package peering

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestLabAgainImmediately interrupts connect after a write, and runs it again immediately: the second run waits for the
// rollback of the first, and connects. The long form does this twenty times, at every stage of connect.
func TestLabAgainImmediately(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	whole := newPair(t, clusters, "again-whole")
	writes := whole.writesOf(t, whole.connectArgs()...)
	whole.remove(t)
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for n := 1; n < writes; n += max(writes/rounds, 1) {
		t.Run(fmt.Sprintf("at %02d", n), func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, fmt.Sprintf("again-%02d", n))
			var again *run
			s := &signalling{signals: map[int]os.Signal{n: syscall.SIGINT}}
			first := a.interposed(t, s.fault)
			s.mu.Lock()
			r := first.start(t, a.connectArgs()...)
			s.send = func(signal os.Signal) {
				assert.NoError(t, r.cmd.Process.Signal(signal))
				again = a.liqoctl.start(t, a.connectArgs()...)
			}
			s.mu.Unlock()
			if code := r.wait(t); code != interrupted && !s.completed(code, n) {
				t.Errorf("first: exit code %d\n%s", code, &r.stderr)
			}
			if again == nil {
				t.Fatalf("it ended before it was interrupted\n%s", &r.stderr)
			}
			if code := again.wait(t); code != 0 {
				t.Errorf("again: exit code %d\n%s", code, &again.stderr)
			}
			a.connectedKeys(t)
			a.remove(t)
		})
	}
}

// interposed is a liqoctl whose requests to both API servers pass through faults.
func (a pair) interposed(t *testing.T, f fault) liqoctl {
	t.Helper()
	servers := map[string]string{}
	for _, c := range a.clusters {
		servers[c.Name] = interpose(t, c.Config, hideInstallations(a.namespace, f))
	}
	return newLiqoctl(t, servers)
}

// TestLabInterruptedBeforeOthers interrupts a connect for which three others wait: they run one after the other, and
// all succeed.
func TestLabInterruptedBeforeOthers(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	a := newPair(t, clusters, "before-others")
	var checks atomic.Int32
	waiting := a.interposed(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, lockPath) {
				checks.Add(1)
			}
			server.ServeHTTP(w, r)
		})
	})
	var others []*run
	var first *run
	var started sync.Mutex
	started.Lock()
	amid := a.interposed(t, before("/daemonsets/node", func() {
		started.Lock() // until first is set
		for range 3 {
			others = append(others, waiting.start(t, a.connectArgs()...))
		}
		wait.Until(t, "three runs to wait", wait.Timeout, func() bool { return checks.Load() > 20 })
		assert.NoError(t, first.cmd.Process.Signal(syscall.SIGINT))
	}))
	first = amid.start(t, a.connectArgs()...)
	started.Unlock()
	if code := first.wait(t); code != interrupted {
		t.Errorf("first: exit code %d\n%s", code, &first.stderr)
	}
	for _, r := range others {
		if code := r.wait(t); code != 0 || !strings.Contains(r.stderr.String(), "is locked by") {
			t.Errorf("another: exit code %d\n%s", code, &r.stderr)
		}
	}
	a.connectedKeys(t)
	a.remove(t)
}

// TestLabLockLost makes both API servers unavailable for 25 seconds during a connect: it ends, and leaves its objects
// for the next run.
func TestLabLockLost(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	a := newPair(t, clusters, "lock-lost")
	const absence = 25 * time.Second
	var back atomic.Int64 // when they were available again, in Unix milliseconds
	s := &signalling{}
	lost := a.interposed(t, func(server http.Handler) http.Handler {
		counted := s.fault(server)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.total() >= 30 {
				back.CompareAndSwap(0, time.Now().Add(absence).UnixMilli())
				if time.Now().UnixMilli() < back.Load() {
					panic(http.ErrAbortHandler)
				}
			}
			counted.ServeHTTP(w, r)
		})
	})
	r := lost.start(t, a.connectArgs()...)
	if code := r.wait(t); code != 1 || len(linesOf(r.stderr.String(), "error: ")) != 1 || len(linesOf(r.stderr.String(), "hint: ")) != 1 {
		t.Errorf("exit code %d\n%s", code, &r.stderr)
	}
	for _, c := range clusters {
		if len(c.Left(t, a.namespace)) == 0 {
			t.Errorf("cluster %s has nothing of it\n%s", c.Name, &r.stderr)
		}
	}
	a.liqoctl.must(t, a.connectArgs()...)
	a.connectedKeys(t)
	a.remove(t)
}

// TestLabManyOfOneHub connects one hub to twenty peers, four with -short, in parallel processes. The peers are
// installations in one cluster, behind API servers that return other cluster IDs.
func TestLabManyOfOneHub(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	peers := 20
	if testing.Short() {
		peers = 4
	}
	const hub = "many-hub"
	clusters[0].RunHelpers(t, hub)
	id, err := clusters[1].Open(t, hub).ID(t.Context())
	require.NoError(t, err)
	atHub := interpose(t, clusters[0].Config, hideInstallations(hub, nil))
	connects := make([]*run, peers)
	disconnect := make([]func() *run, peers)
	for i := range connects {
		namespace := fmt.Sprintf("many-%02d", i)
		clusters[1].RunHelpers(t, namespace)
		other := func(server http.Handler) http.Handler {
			return renamed(server, id, fmt.Sprintf("%s%04d", id[:len(id)-4], i))
		}
		program := newLiqoctl(t, map[string]string{"a": atHub, "b": interpose(t, clusters[1].Config, hideInstallations(namespace, other))})
		which := []string{"--context", "a", "--namespace", hub, "--remote-context", "b", "--remote-namespace", namespace}
		connects[i] = program.start(t, append([]string{"network", "connect", "--remote-name", namespace,
			"--gw-server-service-type", "NodePort", "--image", "liqonet.invalid/any:1"}, which...)...)
		disconnect[i] = func() *run { return program.start(t, append([]string{"network", "disconnect"}, which...)...) }
	}
	for _, r := range connects {
		if code := r.wait(t); code != 0 {
			t.Errorf("exit code %d\n%s", code, &r.stderr)
		}
	}
	if all, err := inventory.Peerings(t.Context(), clusters[0].Open(t, hub)); err != nil || len(all) != peers {
		t.Errorf("%d peerings, want %d: %v", len(all), peers, err)
	}
	for i := range disconnect {
		connects[i] = disconnect[i]()
	}
	for _, r := range connects {
		if code := r.wait(t); code != 0 {
			t.Errorf("disconnect: exit code %d\n%s", code, &r.stderr)
		}
	}
}

// renamed replaces the UID of the namespace that identifies a cluster.
func renamed(server http.Handler, id, other string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			server.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(id), []byte(other)))
	})
}
