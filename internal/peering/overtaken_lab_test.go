//go:build lab

package peering

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// before runs something once, when a request is on its way that changes the object with that path.
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

// TestLabOvertaken has another liqoctl run to its end at the moment at which connect --update writes a document that it
// has computed from an older one.
func TestLabOvertaken(t *testing.T) {
	stages := openStages(t)
	const host = "198.51.100.7"
	expose := func(a act, verb string) {
		a.liqoctl.must(t, "network", verb, host, "--context", "a", "--peer", "b", "--namespace", a.namespace)
	}
	for name, c := range map[string]struct {
		path            string
		meanwhile, then func(t *testing.T, a act)
		code            int
		err             string
	}{
		"withdraw": {
			path:      "/configmaps/peering-b",
			meanwhile: func(_ *testing.T, a act) { expose(a, "withdraw") },
			then: func(t *testing.T, a act) {
				p, err := inventory.Record[records.Peering](t.Context(), stages[0].open(t, a.namespace), records.PeeringName("b"))
				if err != nil || p == nil || len(p.Exposed) > 0 || p.MTU != 1300 {
					t.Errorf("peering %+v, %v, want none exposed and MTU 1300", p, err)
				}
				a.remove(t)
			},
		},
		"disconnect": {
			path:      "/configmaps/peering-b",
			meanwhile: func(t *testing.T, a act) { a.liqoctl.must(t, a.disconnectArgs()...) },
			then:      func(t *testing.T, a act) { a.remove(t) },
			code:      1, err: `peering "b" of cluster "a" was removed during this run`,
		},
		"reset": {
			path: "/configmaps/fabric",
			meanwhile: func(t *testing.T, a act) {
				a.liqoctl.must(t, append(a.resetArgs("a"), "--force")...)
			},
			then: func(t *testing.T, a act) {
				if left := stages[0].left(t, a.namespace); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				a.remove(t)
			},
			code: 1, err: `the installation in cluster "a" was removed during this run`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAct(t, stages, "overtaken-"+name)
			a.liqoctl.must(t, a.connectArgs()...)
			expose(a, "expose")
			program := newLiqoctl(t, map[string]string{
				"a": interpose(t, stages[0].config, alone(a.namespace, before(c.path, func() { c.meanwhile(t, a) }))),
				"b": interpose(t, stages[1].config, alone(a.namespace, nil)),
			})
			r := program.start(t, append(a.connectArgs(), "--update", "--mtu", "1300", "--allow-forward")...)
			if code := r.wait(t); code != c.code || !strings.Contains(r.said.String(), c.err) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, c.code, c.err, &r.said)
			}
			c.then(t, a)
		})
	}
}

// TestLabSwap has many writers change one object at once, each of which adds to what is there.
func TestLabSwap(t *testing.T) {
	s := openStages(t)[0]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "swapped"}}
	if _, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: inventory.Meta(namespace.Name, records.FabricName), Data: map[string]string{records.DataKey: text}}
	}
	const writers = 16
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			_, err := cluster.Swap(t.Context(), s.open(t, namespace.Name), object(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if live == nil {
					return object("x"), nil
				}
				return object(live.Data[records.DataKey] + "x"), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	live, err := s.kube.CoreV1().ConfigMaps(namespace.Name).Get(t.Context(), records.FabricName, metav1.GetOptions{})
	if err != nil || live.Data[records.DataKey] != strings.Repeat("x", writers) {
		t.Errorf("%d writers left %q, %v", writers, live.Data, err)
	}
	// An object that is gone when it is written is not written anew unknowingly.
	calls := 0
	_, err = cluster.Swap(t.Context(), s.open(t, namespace.Name), object(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if calls++; live == nil {
			return nil, nil
		}
		return object("y"), s.kube.CoreV1().ConfigMaps(namespace.Name).Delete(t.Context(), records.FabricName, metav1.DeleteOptions{})
	})
	if err != nil || calls != 2 {
		t.Errorf("deleted meanwhile: %d calls, %v", calls, err)
	}
}
