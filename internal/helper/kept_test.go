//go:build linux

package helper

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/eventually"
)

// keeper is a helper's process as far as it reads objects, and keeps them in a folder.
type keeper struct {
	store cache.Store
	end   func() // of the process
}

func startKeeper(t *testing.T, api *versioned, folder string) (keeper, error) {
	t.Helper()
	m := newMirror(nil, folder)
	k := keeper{store: follow(m, api, &corev1.ConfigMap{}, selected{})}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	k.end = func() { cancel(); all.Wait() }
	t.Cleanup(k.end)
	limit := time.AfterFunc(2*listPatience, cancel)
	defer limit.Stop()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	err := m.run(ctx, log)
	all.Go(func() { m.keep(ctx, log) })
	return k, err
}

func (k keeper) has(want ...string) bool {
	var got []string
	for _, cm := range listed[*corev1.ConfigMap](k.store) {
		got = append(got, cm.Name+"="+cm.Data["x"])
	}
	slices.Sort(got)
	return slices.Equal(got, want)
}

// TestStartWithoutAPIServer: a process that starts while the API server is away goes on with what an earlier one read, and
// follows the API server when it is back.
func TestStartWithoutAPIServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, keptName)
	api := &versioned{objects: map[string]*corev1.ConfigMap{}, version: 10}
	api.write("changed", "old")
	api.write("deleted", "x")
	first, err := startKeeper(t, api, folder)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a file", patience, func() bool { _, err := os.Stat(file); return err == nil })
	first.end()

	api.setAway(true)
	second, err := startKeeper(t, api, folder)
	if err != nil || !second.has("changed=old", "deleted=x") {
		t.Fatalf("started with %v (%v)", second.store.ListKeys(), err)
	}
	api.mu.Lock()
	delete(api.objects, "deleted")
	api.mu.Unlock()
	api.write("changed", "new")
	api.setAway(false)
	eventually.Holds(t, "what the API server has now", patience, func() bool { return second.has("changed=new") })
	second.end()

	api.setAway(true)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"half a file": string(whole[:len(whole)/2]), "a file without its end": string(whole[:strings.LastIndex(string(whole), "{")]), "an empty one": "",
		"no file of this program": "[1]", "a kind that is not followed": `{"store":0,"kind":"Secret","object":{}}`,
		"a store that there is not": `{"store":7,"kind":"ConfigMap","object":{}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		third, err := startKeeper(t, api, folder)
		if err == nil || len(third.store.List()) > 0 {
			t.Errorf("%s: started with %v", what, third.store.ListKeys())
		}
	}
}

func (v *versioned) setAway(away bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away = away
	for _, w := range v.watches {
		w.Stop()
	}
	v.watches = nil
}

// TestNodeKeepsItsAddress: a node's helper that starts while the API server is away has the internal address that was read, and
// asks for none.
func TestNodeKeepsItsAddress(t *testing.T) {
	t.Parallel()
	fabric, client := testFabric(), fake.NewClientset()
	l := &nodeLoop{Node: Node{Env: Env{Client: client, Namespace: testNamespace, Log: slog.New(slog.DiscardHandler)}, Name: "a-1"}}
	l.follow(newMirror(client, ""))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "1"}}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-2", UID: "2"}}
	first := fabric.InternalCIDR.Addr().Next()
	for a, n := range map[*corev1.Node]*coordinationv1.Lease{
		other: addressLease(testNamespace, other, first), node: addressLease(testNamespace, node, first.Next()),
	} {
		if err := l.leases.Add(n); err != nil {
			t.Fatal(a.Name, err)
		}
	}
	if err := l.nodes.Add(node); err != nil {
		t.Fatal(err)
	}
	if err := l.claim(t.Context(), nodeView{fabric: &fabric}); err != nil || l.claims.internal != first.Next() {
		t.Errorf("claimed %s (%v), want %s", l.claims.internal, err, first.Next())
	}
	if err := l.leases.Add(addressLease(testNamespace, node, first.Next().Next())); err != nil {
		t.Fatal(err)
	}
	for range 20 { // processes of a node that has two
		l.claims = claims{}
		if err := l.claim(t.Context(), nodeView{fabric: &fabric}); err != nil || l.claims.internal != first.Next() {
			t.Fatalf("claimed %s (%v), want %s", l.claims.internal, err, first.Next())
		}
	}
	if asked := client.Actions(); len(asked) > 0 {
		t.Errorf("asked the API server: %v", asked)
	}
}

// TestNoSecretIsKept: a helper has nothing of the values that containers of pods are given.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: map[string]string{"token": "planted-1"}},
		Spec: corev1.PodSpec{
			NodeName: "a-1", Containers: []corev1.Container{{Name: "c", Args: []string{"planted-2"}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "planted-3"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.244.0.7"}}},
	}
	k := kept{folder: t.TempDir()}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	k.add(store, &corev1.Pod{})
	if err := store.Add(trimmed(pod, true)); err != nil {
		t.Fatal(err)
	}
	if err := k.save(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(k.folder, keptName))
	if err != nil || !strings.Contains(string(text), "10.244.0.7") || strings.Contains(string(text), "planted") {
		t.Errorf("kept %s (%v)", text, err)
	}
}

// TestTooMuchIsNotKept: a volume that is too large would have the pod evicted.
func TestTooMuchIsNotKept(t *testing.T) {
	t.Parallel()
	k := kept{folder: t.TempDir()}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	k.add(store, &corev1.ConfigMap{})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"x": strings.Repeat("x", keepAtMost)}}
	if err := store.Add(cm); err != nil {
		t.Fatal(err)
	}
	err := k.save()
	left, errRead := os.ReadDir(k.folder)
	if err == nil || errRead != nil || len(left) > 0 {
		t.Errorf("saved (%v), and left %v (%v)", err, left, errRead)
	}
}

// TestKilledWriterLeavesOneFile: processes that are killed while they write do not fill the volume, which would have the pod evicted.
func TestKilledWriterLeavesOneFile(t *testing.T) {
	t.Parallel()
	k := kept{folder: t.TempDir()}
	for range 3 {
		f, err := k.create() // killed here
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	if left, err := os.ReadDir(k.folder); err != nil || len(left) != 1 {
		t.Errorf("left %v (%v)", left, err)
	}
	if err := k.save(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(k.folder); err != nil || len(left) != 1 || left[0].Name() != keptName {
		t.Errorf("after the next write %v (%v)", left, err)
	}
}

// TestKeptAfterAFault: a change that could not be written is written when that is possible again, though nothing else changes.
func TestKeptAfterAFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := kept{folder: t.TempDir()}
		obstacle, file := filepath.Join(k.folder, keptNew), filepath.Join(k.folder, keptName)
		if err := os.Mkdir(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		k.dirty.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.run(ctx, slog.New(slog.DiscardHandler)) }()
		wait := func() {
			time.Sleep(2 * keepEvery) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
			synctest.Wait()
		}
		wait()
		if _, err := os.Stat(file); err == nil {
			t.Error("there was no fault")
		}
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
		wait()
		if _, err := os.Stat(file); err != nil {
			t.Error("not kept")
		}
		cancel()
		<-done
	})
}

// TestSlowDiskIsNoCost: while a volume took a third of a second for a write, changes were kept half a minute later: of helpers that
// were killed meanwhile, and found no API server, some took back what connect had just made.
func TestSlowDiskIsNoCost(t *testing.T) {
	t.Parallel()
	k := kept{folder: t.TempDir()}
	pipe, file := filepath.Join(k.folder, keptNew), filepath.Join(k.folder, keptName)
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	k.dirty.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { k.run(ctx, slog.New(slog.NewTextHandler(t.Output(), nil))) })
	<-time.After(time.Second / 3)
	if _, err := os.ReadFile(pipe); err != nil { // until then the first write waits
		t.Fatal(err)
	}
	k.dirty.Store(true)
	eventually.Holds(t, "the second write", keepShare*time.Second/4, func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Mode().IsRegular()
	})
}
