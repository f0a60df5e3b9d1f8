package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

const namespace = "liqonet"

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// newCluster is an API server that, unlike the fake one alone, refuses an update of an object that is no longer
// as it was read.
func newCluster() *fake.Clientset {
	client := fake.NewClientset()
	version := 0
	next := func(cm *corev1.ConfigMap) {
		version++
		cm.ResourceVersion = strconv.Itoa(version)
	}
	client.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		next(a.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap))
		return false, nil, nil
	})
	client.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		wanted := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap)
		held, err := client.Tracker().Get(configMaps, wanted.Namespace, wanted.Name)
		if err != nil {
			return true, nil, err
		}
		if held.(*corev1.ConfigMap).ResourceVersion != wanted.ResourceVersion {
			return true, nil, conflict()
		}
		next(wanted)
		return false, nil, nil
	})
	return client
}

func conflict() error {
	return apierrors.NewConflict(configMaps.GroupResource(), records.IPAMName, errors.New("the object has been modified"))
}

// writes counts the requests that change something.
func writes(client *fake.Clientset) (n int) {
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			n++
		}
	}
	return n
}

// peer acquires a range for the pods of a peer.
func peer(name string) func(*ipam.Registry) error {
	return func(r *ipam.Registry) error {
		_, err := r.Acquire(ipam.Request{Owner: ipam.Peering(name), Purpose: ipam.PeerPods, Real: prefix("10.244.0.0/16")})
		return err
	}
}

// owners lists who holds what is kept.
func owners(t *testing.T, s *Store) []string {
	t.Helper()
	r, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := r.List()
	names := make([]string, len(held))
	for i, h := range held {
		names[i] = string(h.Owner)
	}
	return names
}

func TestUpdate(t *testing.T) {
	client := newCluster()
	s := New(client, namespace)
	if got := owners(t, s); len(got) > 0 {
		t.Errorf("held where nothing was kept: %s", got)
	}
	if err := s.Update(t.Context(), func(*ipam.Registry) error { return nil }); err != nil || writes(client) > 0 {
		t.Errorf("a change of nothing in nothing: %v, %d writes", err, writes(client))
	}
	for _, name := range []string{"b", "c", "b"} {
		if err := s.Update(t.Context(), peer(name)); err != nil {
			t.Fatal(err)
		}
	}
	if n := writes(client); n != 2 {
		t.Errorf("%d writes for two changes and one that is none", n)
	}
	cm, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), records.IPAMName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"version: 1",
		"pools:",
		`- "10.0.0.0/8"`,
		`- "172.16.0.0/12"`,
		`- "192.168.0.0/16"`,
		"reservations:",
		`- "10.244.0.0/16 peering/b peer-pods real=10.244.0.0/16"`,
		`- "10.245.0.0/16 peering/c peer-pods real=10.244.0.0/16"`,
		"",
	}, "\n")
	if diff := cmp.Diff(map[string]string{records.DataKey: want}, cm.Data); diff != "" {
		t.Errorf("-want +kept:\n%s", diff)
	}
	if got := cm.Labels[records.LabelComponent]; got != records.ComponentIPAM {
		t.Errorf("label %q", got)
	}
}

func TestUpdateKeepsWhatOthersPutThere(t *testing.T) {
	client := newCluster()
	s := New(client, namespace)
	if err := s.Update(t.Context(), peer("b")); err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	cm, err := maps.Get(t.Context(), records.IPAMName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cm.Annotations = map[string]string{"example.com/backup": "daily"}
	cm.Data["note"] = "by hand"
	if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), peer("c")); err != nil {
		t.Fatal(err)
	}
	cm, err = maps.Get(t.Context(), records.IPAMName, metav1.GetOptions{})
	if err != nil || cm.Data["note"] != "by hand" || cm.Annotations["example.com/backup"] != "daily" {
		t.Errorf("after an update: %+v, %v", cm, err)
	}
}

// TestUpdateLosesRaces has another writer come between read and write: to create, to change, to delete.
func TestUpdateLosesRaces(t *testing.T) {
	other := func(s *Store, t *testing.T) {
		if err := s.Update(t.Context(), peer("other")); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		before func(*Store, *testing.T)
		race   func(*Store, *testing.T)
		want   []string
	}{
		{"create", nil, other, []string{"peering/other", "peering/b"}},
		{
			"change",
			func(s *Store, t *testing.T) {
				if err := s.Update(t.Context(), peer("first")); err != nil {
					t.Error(err)
				}
			},
			other,
			[]string{"peering/first", "peering/other", "peering/b"},
		},
		{"delete", other, nil, []string{"peering/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newCluster()
				s := New(client, namespace)
				if c.before != nil {
					c.before(s, t)
				}
				calls := 0
				err := s.Update(t.Context(), func(r *ipam.Registry) error {
					if calls++; calls == 1 {
						if c.race != nil {
							c.race(New(client, namespace), t)
						} else if err := client.Tracker().Delete(configMaps, namespace, records.IPAMName); err != nil {
							t.Error(err)
						}
					}
					return peer("b")(r)
				})
				if err != nil || calls != 2 {
					t.Errorf("%v after %d calls", err, calls)
				}
				held := owners(t, s)
				if diff := cmp.Diff(c.want, held); diff != "" {
					t.Errorf("-want +held:\n%s", diff)
				}
			})
		})
	}
}

func TestConcurrentWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newCluster()
		const writers = 64
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				if err := New(client, namespace).Update(t.Context(), peer(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		r, err := New(client, namespace).Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range writers {
			if held := r.Held(ipam.Peering(fmt.Sprint(i))); len(held) != 1 {
				t.Errorf("writer %d holds %+v", i, held)
			}
		}
	})
}

func TestUpdateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newCluster()
		s := New(client, namespace)
		if err := s.Update(t.Context(), peer("b")); err != nil {
			t.Fatal(err)
		}
		calls := 0
		client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, conflict()
		})
		counted := func(r *ipam.Registry) error {
			calls++
			return peer("c")(r)
		}
		began := time.Now()
		err := s.Update(t.Context(), counted)
		if took := time.Since(began); !apierrors.IsConflict(err) || took < patience || took > patience+longestPause {
			t.Errorf("%v after %d calls in %s", err, calls, took)
		}
		// A pause of a second and a half at the mean, and some short ones: so many requests a writer costs at most.
		if calls < 60 || calls > 140 {
			t.Errorf("%d calls in two minutes", calls)
		}

		ctx, cancel := context.WithCancel(t.Context())
		calls = 0
		err = s.Update(ctx, func(r *ipam.Registry) error {
			defer cancel()
			return counted(r)
		})
		if !errors.Is(err, context.Canceled) || calls != 1 {
			t.Errorf("interrupted: %v after %d calls", err, calls)
		}
	})
}

func TestUpdateReturnsTheChangesError(t *testing.T) {
	client := newCluster()
	full := func(r *ipam.Registry) error {
		_, err := r.Acquire(ipam.Request{Owner: ipam.Peering("b"), Purpose: ipam.PeerPods, Bits: 4})
		return err
	}
	if err := New(client, namespace).Update(t.Context(), full); !errors.Is(err, ipam.ErrNoneFree) {
		t.Error(err)
	}
	// An error of the change is final even where it looks like a lost race.
	calls := 0
	err := New(client, namespace).Update(t.Context(), func(*ipam.Registry) error {
		calls++
		return conflict()
	})
	if !apierrors.IsConflict(err) || calls != 1 || writes(client) > 0 {
		t.Errorf("%v after %d calls and %d writes", err, calls, writes(client))
	}
}

func TestDamageIsNotOverwritten(t *testing.T) {
	documents := map[string]map[string]string{"no key": {"registry": "version: 1\n"}, "no data": nil}
	for name, c := range damaged {
		documents[name] = map[string]string{records.DataKey: c.text}
	}
	for name, data := range documents {
		t.Run(name, func(t *testing.T) {
			client := newCluster()
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: records.IPAMName}, Data: data}
			if err := client.Tracker().Add(cm); err != nil {
				t.Fatal(err)
			}
			s := New(client, namespace)
			err := s.Update(t.Context(), peer("b"))
			if err == nil || !strings.HasPrefix(err.Error(), "read ConfigMap liqonet/ipam: ") || writes(client) > 0 {
				t.Errorf("%v, %d writes", err, writes(client))
			}
			if _, err := s.Load(t.Context()); err == nil {
				t.Error("loaded")
			}
		})
	}
}

// TestLaterFieldsAreKept: a document with a field of a later release is read, and a change that would delete it is refused.
func TestLaterFieldsAreKept(t *testing.T) {
	client := newCluster()
	text := Encode(installed(t)) + "zones: [a, b]\n"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: records.IPAMName, Namespace: namespace}, Data: map[string]string{records.DataKey: text}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	s := New(client, namespace)
	if held := owners(t, s); len(held) == 0 {
		t.Error("nothing is read")
	}
	if err := s.Update(t.Context(), func(*ipam.Registry) error { return nil }); err != nil {
		t.Errorf("an update that changes nothing: %v", err)
	}
	err := s.Update(t.Context(), peer("c"))
	if unknown, ok := errors.AsType[*records.UnknownFieldsError](err); !ok || !slices.Equal(unknown.Fields, []string{"zones"}) {
		t.Errorf("an update: %v", err)
	}
	if n := writes(client); n > 0 {
		t.Errorf("%d writes", n)
	}
}

func TestRequestsFail(t *testing.T) {
	for verb, message := range map[string]string{
		"get":    "read ConfigMap liqonet/ipam: ",
		"create": "write ConfigMap liqonet/ipam: ",
	} {
		client := newCluster()
		client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), records.IPAMName, errors.New("no role"))
		})
		err := New(client, namespace).Update(t.Context(), peer("b"))
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
