package cache

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// versioned is the ConfigMaps of an API server, with the version semantics of k8s.io/apiserver: a watch delivers
// objects newer than the version from which it starts, for any version, and a list of a future version is rejected.
type versioned struct {
	mu      sync.Mutex
	version int
	objects map[string]*corev1.ConfigMap
	watches []*versionedWatch
	lists   int
}

type versionedWatch struct {
	*watch.FakeWatcher
	from int
}

func atVersion(version string) int {
	n, _ := strconv.Atoi(version) // "" is 0
	return n
}

// List implements resource.
func (v *versioned) List(_ context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lists++
	if atVersion(o.ResourceVersion) > v.version {
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(v.version)}}
	for _, cm := range v.objects {
		list.Items = append(list.Items, *cm.DeepCopy())
	}
	return list, nil
}

// Watch implements resource.
func (v *versioned) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil) // no streaming lists
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	w := &versionedWatch{watch.NewFakeWithChanSize(100, false), atVersion(o.ResourceVersion)}
	for _, cm := range v.objects {
		v.send(w, watch.Modified, cm)
	}
	v.watches = append(v.watches, w)
	return w, nil
}

func (v *versioned) send(w *versionedWatch, what watch.EventType, cm *corev1.ConfigMap) {
	if atVersion(cm.ResourceVersion) > w.from && !w.IsStopped() {
		w.Action(what, cm.DeepCopy())
	}
}

// write stores an object at the next version, and notifies the watches.
func (v *versioned) write(name, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version++
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "liqonet"}, Data: map[string]string{"x": text}}
	cm.ResourceVersion = strconv.Itoa(v.version)
	v.objects[name] = cm
	for _, w := range v.watches {
		v.send(w, watch.Modified, cm)
	}
}

// restart ends all watches, and with a backup restores it.
func (v *versioned) restart(backup *versioned) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.watches {
		w.Stop()
	}
	v.watches = nil
	if backup != nil {
		v.version, v.objects = backup.version, backup.objects
	}
}

// patience is the longest wait for a change.
const patience = 2 * time.Minute

// TestRestoredStore checks that a helper's store follows the API server back to a backup of etcd, and that a restart
// without a backup does not list all objects again.
func TestRestoredStore(t *testing.T) {
	api := &versioned{objects: map[string]*corev1.ConfigMap{}, version: 1000}
	c := New(nil)
	store := Watch(c, api, &corev1.ConfigMap{}, Selection{})
	api.write("kept", "old")
	backup := &versioned{version: 500, objects: map[string]*corev1.ConfigMap{}}
	backup.write("kept", "old")
	backup.write("deleted since", "x")
	api.write("kept", "new")
	api.write("made since", "x")
	require.NoError(t, c.Run(t.Context()))
	has := func(want ...string) bool {
		var got []string
		for _, cm := range Listed[*corev1.ConfigMap](store) {
			got = append(got, cm.Name+"="+cm.Data["x"])
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}
	if !has("kept=new", "made since=x") {
		t.Fatalf("read %v", store.List())
	}
	// Every watch delivers an event before it ends: an informer lists again after one without events.
	follows := func() {
		t.Helper()
		for _, text := range []string{"y", "z"} {
			api.write("made since", text)
			wait.Until(t, "what is written", patience, func() bool { return has("kept=new", "made since="+text) })
		}
	}
	follows()
	read := api.listed()
	api.restart(nil)
	follows()
	if again := api.listed() - read; again > 2 {
		t.Errorf("%d lists after a restart, want one to see the version for each watch", again)
	}
	api.restart(backup)
	api.write("after", "z")
	wait.Until(t, "the restored state, and what is written then", patience, func() bool { return has("after=z", "deleted since=x", "kept=old") })
}

func (v *versioned) listed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lists
}
