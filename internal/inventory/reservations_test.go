package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// writes counts the requests that modify objects.
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
		_, err := r.Acquire(ipam.Request{Owner: ipam.Peering(name), Purpose: ipam.PeerPods, Real: netip.MustParsePrefix("10.244.0.0/16")})
		return err
	}
}

// update makes a change that must succeed.
func update(t *testing.T, c *kube.Cluster, change func(*ipam.Registry) error) {
	t.Helper()
	assert.NoError(t, inventory.UpdateReservations(t.Context(), c, change))
}

// owners returns the owners of the reservations.
func owners(t *testing.T, c *kube.Cluster) (names []string) {
	t.Helper()
	r, err := inventory.Reservations(t.Context(), c)
	require.NoError(t, err)
	for _, h := range r.List() {
		names = append(names, string(h.Owner))
	}
	return names
}

// reservationsConfigMap returns the ConfigMap of reservations.
func reservationsConfigMap(t *testing.T, client *fake.Clientset) *corev1.ConfigMap {
	t.Helper()
	cm, err := client.CoreV1().ConfigMaps(records.DefaultNamespace).Get(t.Context(), records.IPAMName, metav1.GetOptions{})
	require.NoError(t, err)
	return cm
}

func TestUpdateReservations(t *testing.T) {
	c, client := fakecluster.NewAPIServer(fakecluster.Config{})
	if got := owners(t, c); len(got) > 0 {
		t.Errorf("held where nothing was kept: %s", got)
	}
	update(t, c, func(*ipam.Registry) error { return nil })
	if writes(client) > 0 {
		t.Errorf("a change of nothing in nothing: %d writes", writes(client))
	}
	for _, name := range []string{"b", "c", "b"} {
		update(t, c, peer(name))
	}
	if n := writes(client); n != 2 {
		t.Errorf("%d writes for two changes and one that is none", n)
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
	cm := reservationsConfigMap(t, client)
	assert.Equal(t, "kept", map[string]string{records.DataKey: want}, cm.Data)
	if got := cm.Labels[records.LabelComponent]; got != records.ComponentIPAM {
		t.Errorf("label %q", got)
	}
}

func TestUpdateReservationsKeepsFieldsOfOthers(t *testing.T) {
	c, client := fakecluster.NewAPIServer(fakecluster.Config{})
	update(t, c, peer("b"))
	cm := reservationsConfigMap(t, client)
	cm.Annotations = map[string]string{"example.com/backup": "daily"}
	cm.Data["note"] = "by hand"
	_, err := client.CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	update(t, c, peer("c"))
	if cm = reservationsConfigMap(t, client); cm.Data["note"] != "by hand" || cm.Annotations["example.com/backup"] != "daily" {
		t.Errorf("after an update: %+v", cm)
	}
}

// TestUpdateReservationsRetriesConflicts: another writer creates, changes or deletes the ConfigMap between read and
// write.
func TestUpdateReservationsRetriesConflicts(t *testing.T) {
	other := func(t *testing.T, c *kube.Cluster) { update(t, c, peer("other")) }
	remove := func(t *testing.T, c *kube.Cluster) {
		_, err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: inventory.Meta(c.Namespace, records.IPAMName)})
		assert.NoError(t, err)
	}
	for name, c := range map[string]struct {
		first string // owner of a reservation before; "": none
		race  func(*testing.T, *kube.Cluster)
		want  []string
	}{
		"create": {"", other, []string{"peering/other", "peering/b"}},
		"change": {"first", other, []string{"peering/first", "peering/other", "peering/b"}},
		"delete": {"first", remove, []string{"peering/b"}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			cl, _ := fakecluster.NewAPIServer(fakecluster.Config{})
			if c.first != "" {
				update(t, cl, peer(c.first))
			}
			calls := 0
			update(t, cl, func(r *ipam.Registry) error {
				if calls++; calls == 1 {
					c.race(t, cl)
				}
				return peer("b")(r)
			})
			if calls != 2 {
				t.Errorf("%d calls", calls)
			}
			assert.Equal(t, "held", c.want, owners(t, cl))
		})
	}
}

func TestConcurrentReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
		const writers = 64
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() { update(t, c, peer(fmt.Sprint(i))) })
		}
		all.Wait()
		held := make(map[string]int)
		for _, name := range owners(t, c) {
			held[name]++
		}
		want := make(map[string]int)
		for i := range writers {
			want[string(ipam.Peering(fmt.Sprint(i)))] = 1
		}
		if !maps.Equal(held, want) {
			t.Errorf("held %v", held)
		}
	})
}

func TestUpdateReservationsReturnsTheChangesError(t *testing.T) {
	c, client := fakecluster.NewAPIServer(fakecluster.Config{})
	err := inventory.UpdateReservations(t.Context(), c, func(r *ipam.Registry) error {
		_, err := r.Acquire(ipam.Request{Owner: ipam.Peering("b"), Purpose: ipam.PeerPods, Bits: 4})
		return err
	})
	if !errors.Is(err, ipam.ErrNoneFree) {
		t.Error(err)
	}
	// An error of the change is final even if it is a conflict error of the API.
	calls := 0
	err = inventory.UpdateReservations(t.Context(), c, func(*ipam.Registry) error {
		calls++
		return apierrors.NewConflict(configMaps.GroupResource(), records.IPAMName, errors.New("the object has been modified"))
	})
	if !apierrors.IsConflict(err) || calls != 1 || writes(client) > 0 {
		t.Errorf("%v after %d calls and %d writes", err, calls, writes(client))
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = inventory.UpdateReservations(ctx, c, func(r *ipam.Registry) error {
		defer cancel()
		update(t, c, peer("other"))
		return peer("b")(r)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestDamagedReservationsAreNotOverwritten(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"no data": nil, "no key": {"registry": "version: 1\n"}, "empty": {records.DataKey: ""},
		"cut off":       {records.DataKey: "version: 1\nreservations:\n- \"10.96.0.0/12 clus"},
		"newer version": {records.DataKey: "version: 2\nranges: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: inventory.Meta(records.DefaultNamespace, records.IPAMName), Data: data}
			c, client := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{cm}})
			err := inventory.UpdateReservations(t.Context(), c, peer("b"))
			if err == nil || !strings.Contains(err.Error(), "read ConfigMap liqonet/ipam: ") || writes(client) > 0 {
				t.Errorf("%v, %d writes", err, writes(client))
			}
			if _, err := inventory.Reservations(t.Context(), c); err == nil {
				t.Error("read")
			}
		})
	}
}

// TestLaterFieldsOfReservationsAreKept: a document with a field of a later release is decoded, and a change that would
// delete the field is rejected.
func TestLaterFieldsOfReservationsAreKept(t *testing.T) {
	r, err := ipam.New(ipam.DefaultPools()...)
	require.NoError(t, err)
	require.NoError(t, peer("b")(r))
	cm := &corev1.ConfigMap{
		ObjectMeta: inventory.Meta(records.DefaultNamespace, records.IPAMName),
		Data:       map[string]string{records.DataKey: store.Encode(r) + "zones: [a, b]\n"},
	}
	c, client := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{cm}})
	if held := owners(t, c); len(held) == 0 {
		t.Error("nothing is read")
	}
	update(t, c, func(*ipam.Registry) error { return nil })
	err = inventory.UpdateReservations(t.Context(), c, peer("c"))
	if unknown, ok := errors.AsType[*records.UnknownFieldsError](err); !ok || !slices.Equal(unknown.Fields, []string{"zones"}) {
		t.Errorf("an update: %v", err)
	}
	if n := writes(client); n > 0 {
		t.Errorf("%d writes", n)
	}
}

func TestRequestsForReservationsFail(t *testing.T) {
	for verb, message := range map[string]string{
		"get":    "read ConfigMap liqonet/ipam in cluster",
		"create": "create ConfigMap liqonet/ipam in cluster",
	} {
		c, client := fakecluster.NewAPIServer(fakecluster.Config{})
		client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), records.IPAMName, errors.New("no role"))
		})
		err := inventory.UpdateReservations(t.Context(), c, peer("b"))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
