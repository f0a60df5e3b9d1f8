//go:build lab

package peering

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// before calls run once, before the first request that changes the object with that path.
func before(path string, run func()) fault {
	var once sync.Once
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if writes(r) && strings.HasSuffix(r.URL.Path, path) {
				once.Do(run)
			}
			server.ServeHTTP(w, r)
		})
	}
}

// TestLabOvertaken starts another liqoctl when connect --update is about to write a record: the other run waits, and
// runs afterwards.
func TestLabOvertaken(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	const host = "198.51.100.7"
	exposing := func(a pair, verb string) []string {
		return []string{"network", verb, host, "--context", "a", "--peer", "b", "--namespace", a.namespace}
	}
	for name, c := range map[string]struct {
		path string
		next func(pair) []string // command of the other run
		then func(t *testing.T, a pair)
	}{
		"withdraw": {
			path: "/configmaps/peering-b",
			next: func(a pair) []string { return exposing(a, "withdraw") },
			then: func(t *testing.T, a pair) {
				p, err := inventory.Record[records.Peering](t.Context(), clusters[0].Open(t, a.namespace), records.PeeringName("b"))
				if err != nil || p == nil || len(p.Exposed) > 0 || p.MTU != 1300 {
					t.Errorf("peering %+v, %v, want none exposed and MTU 1300", p, err)
				}
			},
		},
		"disconnect": {
			path: "/configmaps/peering-b",
			next: pair.disconnectArgs,
			then: func(t *testing.T, a pair) {
				if all, err := inventory.Peerings(t.Context(), clusters[0].Open(t, a.namespace)); err != nil || len(all) > 0 {
					t.Errorf("peerings %v, %v", all, err)
				}
			},
		},
		"reset": {
			path: "/configmaps/fabric",
			next: func(a pair) []string { return append(a.resetArgs("a"), "--force") },
			then: func(t *testing.T, a pair) {
				if left := clusters[0].Left(t, a.namespace); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, "overtaken-"+name)
			a.liqoctl.must(t, a.connectArgs()...)
			a.liqoctl.must(t, exposing(a, "expose")...)
			var next *run
			program := newLiqoctl(t, map[string]string{
				"a": interpose(t, clusters[0].Config, hideInstallations(a.namespace, before(c.path, func() { next = a.liqoctl.start(t, c.next(a)...) }))),
				"b": interpose(t, clusters[1].Config, hideInstallations(a.namespace, nil)),
			})
			program.must(t, append(a.connectArgs(), "--update", "--mtu", "1300", "--allow-forward")...)
			if next == nil {
				t.Fatal("nothing was written")
			}
			if code := next.wait(t); code != 0 {
				t.Errorf("exit code %d\n%s", code, &next.stderr)
			}
			c.then(t, a)
			a.remove(t)
		})
	}
}

// TestLabSwap has many writers change one object in parallel, each of which adds to its contents.
func TestLabSwap(t *testing.T) {
	s := fakecluster.OpenReal(t)[0]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "swapped"}}
	_, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	object := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: inventory.Meta(namespace.Name, records.FabricName), Data: map[string]string{records.DataKey: text}}
	}
	const writers = 16
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			_, err := kube.Swap(t.Context(), s.Open(t, namespace.Name), object(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if live == nil {
					return object("x"), nil
				}
				return object(live.Data[records.DataKey] + "x"), nil
			})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	live, err := s.Kube.CoreV1().ConfigMaps(namespace.Name).Get(t.Context(), records.FabricName, metav1.GetOptions{})
	if err != nil || live.Data[records.DataKey] != strings.Repeat("x", writers) {
		t.Errorf("%d writers left %q, %v", writers, live.Data, err)
	}
	// An object that was deleted before the write is not created again from the old contents.
	calls := 0
	_, err = kube.Swap(t.Context(), s.Open(t, namespace.Name), object(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if calls++; live == nil {
			return nil, nil
		}
		return object("y"), s.Kube.CoreV1().ConfigMaps(namespace.Name).Delete(t.Context(), records.FabricName, metav1.DeleteOptions{})
	})
	if err != nil || calls != 2 {
		t.Errorf("deleted meanwhile: %d calls, %v", calls, err)
	}
}
