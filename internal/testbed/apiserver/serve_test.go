package apiserver

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// served returns a fake client, and a real client that reaches it through Serve.
func served(t *testing.T) (*fake.Clientset, *kubernetes.Clientset) {
	fakeClient := fake.NewClientset()
	socket := filepath.Join(t.TempDir(), "api")
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), fakeClient, socket) }()
	t.Cleanup(func() {
		assert.NoError(t, <-done)
	})
	config := ClientConfig(socket)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	wait.Until(t, "the answer", wait.Timeout, func() bool {
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return fakeClient, client
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels}}
}

func TestServeReadsAndWrites(t *testing.T) {
	behind, client := served(t)
	maps := client.CoreV1().ConfigMaps("ns")
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of nothing: %v", err)
	}
	if _, err := maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"k":"v"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]kubernetes.Interface{"behind": behind, "client": client} {
		if cm, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || cm.Data["k"] != "v" {
			t.Errorf("%s: %v, %v", name, cm, err)
		}
	}
}

func TestServeSelects(t *testing.T) {
	behind, client := served(t)
	for _, cm := range []*corev1.ConfigMap{configMap("a", map[string]string{"l": "1"}), configMap("b", map[string]string{"l": "2"})} {
		if _, err := behind.CoreV1().ConfigMaps("ns").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []metav1.ListOptions{{LabelSelector: "l=2"}, {LabelSelector: "l in (2,3)"}, {FieldSelector: "metadata.name=b"}} {
		list, err := client.CoreV1().ConfigMaps("ns").List(t.Context(), o)
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "b" {
			t.Errorf("%+v: %v, %v", o, list, err)
		}
	}
}

func TestServeFeedsInformers(t *testing.T) {
	behind, client := served(t)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("no first list")
	}
	maps := behind.CoreV1().ConfigMaps("ns")
	value := func() string {
		obj, ok, _ := informer.GetStore().GetByKey("ns/a")
		if !ok {
			return "none"
		}
		return obj.(*corev1.ConfigMap).Data["k"]
	}
	cm, err := maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	wait.Until(t, "the answer", wait.Timeout, func() bool { return value() == "" })
	cm.Data = map[string]string{"k": "v"}
	if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the answer", wait.Timeout, func() bool { return value() == "v" })
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	wait.Until(t, "the answer", wait.Timeout, func() bool { return value() == "none" })
}

// TestServeReportsDeletions deletes an object between a client's list and its watch.
func TestServeReportsDeletions(t *testing.T) {
	behind, client := served(t)
	maps := behind.CoreV1().ConfigMaps("ns")
	if _, err := maps.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().ConfigMaps("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	events, err := client.CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer events.Stop()
	if e := <-events.ResultChan(); e.Type != watch.Deleted || e.Object.(*corev1.ConfigMap).Name != "a" {
		t.Errorf("first event: %+v", e)
	}
}
