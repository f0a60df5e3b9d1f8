package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

func ourMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: records.DefaultNamespace, Name: name,
		Labels: map[string]string{records.LabelComponent: records.ComponentFabric},
	}
}

func fabric(record string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: ourMeta(records.FabricName), Data: map[string]string{records.DataKey: record}}
}

func installation(t *testing.T, image string) []kube.Object {
	t.Helper()
	objects, err := templates.Base(templates.BaseValues{Namespace: records.DefaultNamespace, Image: image})
	require.NoError(t, err)
	return objects
}

func actions(changes []kube.Change) map[kube.Action]int {
	counts := make(map[kube.Action]int)
	for _, change := range changes {
		counts[change.Action]++
	}
	return counts
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	objects := installation(t, "liqonet:1")
	first, err := c.Apply(t.Context(), objects...)
	require.NoError(t, err)
	assert.Equal(t, "first time", map[kube.Action]int{kube.Created: len(objects)}, actions(first))
	second, err := c.Apply(t.Context(), objects...)
	require.NoError(t, err)
	assert.Equal(t, "second time", map[kube.Action]int{kube.Unchanged: len(objects)}, actions(second))
}

func TestDryRunReportsDifferencesAndChangesNothing(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := c.Apply(t.Context(), installation(t, "liqonet:1")...)
	require.NoError(t, err)
	for range 2 {
		changes, err := c.DryRun().Apply(t.Context(), installation(t, "liqonet:2")...)
		require.NoError(t, err)
		last := changes[len(changes)-1]
		last.Fields = last.Fields[1:] // the installation's digest
		want := kube.Change{
			Kind: "DaemonSet", Namespace: "liqonet", Name: "node", Action: kube.Changed,
			Fields: []kube.FieldChange{{Path: "spec.template.spec.containers[0].image", Old: "liqonet:1", New: "liqonet:2"}},
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Fatal(diff)
		}
		if last.String() != "changed DaemonSet liqonet/node" || !last.Alters() {
			t.Errorf("%s, alters %v", last, last.Alters())
		}
	}
}

func TestDryRunOnAnEmptyCluster(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	objects := installation(t, "liqonet:1")
	changes, err := c.DryRun().Apply(t.Context(), objects...)
	require.NoError(t, err)
	assert.Equal(t, "changes", map[kube.Action]int{kube.Created: len(objects)}, actions(changes))
	if _, err := api.CoreV1().Namespaces().Get(t.Context(), records.DefaultNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the plan made a namespace: %v", err)
	}
}

// texts returns changes as users see them.
func texts(changes []kube.FieldChange) (all []string) {
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}

func TestDifferencesInDocuments(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{
		fabric("mtu: 1500\nname: milan\noverlay:\n  kind: vxlan\n"),
		&corev1.Secret{ObjectMeta: ourMeta("keys"), Data: map[string][]byte{"privateKey": []byte("old")}},
	}})
	changes, err := c.DryRun().Apply(t.Context(), fabric("mtu: 1400\nname: milan\noverlay:\n  kind: geneve\n"),
		&corev1.Secret{ObjectMeta: ourMeta("keys"), Data: map[string][]byte{"privateKey": []byte("new")}})
	require.NoError(t, err)
	got := [][]string{texts(changes[0].Fields), texts(changes[1].Fields)}
	want := [][]string{{"data.record.mtu: 1500 -> 1400", `data.record.overlay.kind: "vxlan" -> "geneve"`}, {"data.privateKey differs"}}
	assert.Equal(t, "differences", want, got)
	assert.Equal(t, "a Secret's field", kube.FieldChange{Path: "data.privateKey", Redacted: true}, changes[1].Fields[0])
}

// TestDifferencesOfEmptyDocuments: an empty record differs from a complete one in every field.
func TestDifferencesOfEmptyDocuments(t *testing.T) {
	record, empty := fabric("mtu: 1400\nname: milan\n"), fabric("")
	empty.Data = map[string]string{records.DataKey: ""}
	for _, c := range []struct {
		before, after *corev1.ConfigMap
		want          []string
	}{
		{empty, record, []string{"data.record.mtu: none -> 1400", `data.record.name: none -> "milan"`}},
		{record, empty, []string{"data.record.mtu: 1400 -> none", `data.record.name: "milan" -> none`}},
	} {
		assert.Equal(t, "differences", c.want, texts(kube.Differences(c.before, c.after)))
	}
}

// TestApplyLeavesFieldsOfOthers: a gateway writes data into a ConfigMap that liqoctl applied without data. Applying it
// again must not delete the data.
func TestApplyLeavesFieldsOfOthers(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	empty := &corev1.ConfigMap{ObjectMeta: ourMeta("gateway-milan")}
	_, err := c.Apply(t.Context(), empty)
	require.NoError(t, err)
	maps := api.CoreV1().ConfigMaps(records.DefaultNamespace)
	live, err := maps.Get(t.Context(), empty.Name, metav1.GetOptions{})
	require.NoError(t, err)
	live.Data = map[string]string{records.DataKey: "pod: x"}
	_, err = maps.Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "gateway"})
	require.NoError(t, err)
	changes, err := c.Apply(t.Context(), empty)
	if err != nil || changes[0].Action != kube.Unchanged {
		t.Fatalf("%v, %v", changes, err)
	}
	if live, err = maps.Get(t.Context(), empty.Name, metav1.GetOptions{}); err != nil || live.Data[records.DataKey] != "pod: x" {
		t.Errorf("data %v, %v", live.Data, err)
	}
}

// TestDryRunRereadsChangedObjects: a gateway writes its status between the two reads by which a dry run compares an
// object.
func TestDryRunRereadsChangedObjects(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	empty := &corev1.ConfigMap{ObjectMeta: ourMeta("status-milan")}
	_, err := c.Apply(t.Context(), empty)
	require.NoError(t, err)
	writes := 0
	api.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if writes++; writes > 2 {
			return false, nil, nil
		}
		at, name := corev1.SchemeGroupVersion.WithResource("configmaps"), empty.Name
		live, err := api.Tracker().Get(at, records.DefaultNamespace, name)
		if err != nil {
			return true, nil, err
		}
		live = live.DeepCopyObject()
		status := live.(*corev1.ConfigMap)
		status.ResourceVersion, status.Data = fmt.Sprint("again ", writes), map[string]string{records.DataKey: fmt.Sprint(writes)}
		return false, nil, api.Tracker().Update(at, status, records.DefaultNamespace)
	})
	dry := c.DryRun()
	_, err = dry.Apply(t.Context(), empty)
	require.NoError(t, err)
	if planned := dry.Planned(); len(planned) > 0 || writes != 3 {
		t.Errorf("%v after %d looks", planned, writes)
	}
}

func TestForeignObjectsAreUnchanged(t *testing.T) {
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: records.FabricName},
		Data:       map[string]string{"precious": "yes"},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: records.DefaultNamespace}}
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{theirs, namespace}})
	_, err := c.Apply(t.Context(), fabric("mtu: 1500\n"))
	if err == nil || !strings.HasSuffix(err.Error(), "is not managed by liqonet (no label "+records.LabelComponent+")") || hint.Of(err) == "" {
		t.Fatalf("apply over a foreign ConfigMap: %v", err)
	}
	changes, err := c.Apply(t.Context(), installation(t, "liqonet:1")[0])
	if err != nil || changes[0].Action != kube.Kept {
		t.Errorf("apply over a foreign namespace: %v, %v", changes, err)
	}
	changes, err = c.Delete(t.Context(), fabric(""), installation(t, "liqonet:1")[0])
	require.NoError(t, err)
	assert.Equal(t, "changes", map[kube.Action]int{kube.Kept: 2}, actions(changes))
	live, err := api.CoreV1().ConfigMaps(records.DefaultNamespace).Get(t.Context(), records.FabricName, metav1.GetOptions{})
	if err != nil || live.Data["precious"] != "yes" {
		t.Errorf("%v, %v", live, err)
	}
}

// TestApplyOrder: namespaces are applied first, workloads after the objects that their pods need, and bindings after
// the objects that they bind. An API server rejects them otherwise.
func TestApplyOrder(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	objects, err := templates.Base(templates.BaseValues{Namespace: records.DefaultNamespace, Image: "liqonet:1", Policies: true})
	require.NoError(t, err)
	_, err = c.Apply(t.Context(), objects...)
	require.NoError(t, err)
	var order []string
	for _, action := range api.Actions() {
		if action.GetVerb() == "patch" {
			order = append(order, action.GetResource().Resource)
		}
	}
	if order[0] != "namespaces" || order[len(order)-1] != "daemonsets" {
		t.Errorf("order %v", order)
	}
	for binding, bound := range map[string]string{
		"rolebindings": "roles", "clusterrolebindings": "clusterroles", "validatingadmissionpolicybindings": "validatingadmissionpolicies",
	} {
		first := slices.Index(order, binding)
		if first < 0 || !slices.Contains(order[:first], bound) || slices.Contains(order[first:], bound) {
			t.Errorf("%s before %s: %v", binding, bound, order)
		}
	}
}

func TestApplyErrorNamesOperandAndCause(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Context: "milan"})
	api.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("quota exceeded")
	})
	_, err := c.Apply(t.Context(), fabric("mtu: 1500\n"))
	if err == nil || err.Error() != `apply ConfigMap liqonet/fabric in cluster "milan": quota exceeded` {
		t.Errorf("error %v", err)
	}
}

func TestDeleteWaitsUntilGone(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	objects := installation(t, "liqonet:1")
	_, err := c.Apply(t.Context(), objects...)
	require.NoError(t, err)
	// The DaemonSet is deleted only after its watch is open: as with foreground deletion, an accepted delete request
	// does not mean that the object is gone.
	var held []clienttesting.Action
	api.PrependReactor("delete", "daemonsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		held = append(held, action)
		return len(held) == 1, nil, nil
	})
	api.PrependWatchReactor("daemonsets", releasing(t, api.AppsV1().DaemonSets(records.DefaultNamespace).Delete, "node"))
	changes, err := c.Delete(t.Context(), objects...)
	require.NoError(t, err)
	assert.Equal(t, "changes", map[kube.Action]int{kube.Deleted: len(objects)}, actions(changes))
	remaining, err := c.List(t.Context(), "")
	if err != nil || len(remaining) != 0 {
		t.Errorf("%d objects remain, %v", len(remaining), err)
	}
	if changes, err = c.Delete(t.Context(), objects...); err != nil || actions(changes)[kube.Absent] != len(objects) {
		t.Errorf("a second time: %v, %v", changes, err)
	}
}

// releasing deletes an object when a watch of it opens.
func releasing(t *testing.T, remove func(context.Context, string, metav1.DeleteOptions) error, name string) clienttesting.WatchReactionFunc {
	return func(clienttesting.Action) (bool, watchInterface, error) {
		go func() {
			if err := remove(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("delete %s: %v", name, err)
			}
		}()
		return false, nil, nil
	}
}

func TestListFindsLabelledObjects(t *testing.T) {
	peering := fabric("")
	peering.Name, peering.Labels = "peering-b", map[string]string{records.LabelComponent: "peering", records.LabelPeering: "b"}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: "kube-root-ca.crt"}}
	deployment := &appsv1.Deployment{ObjectMeta: peering.ObjectMeta}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("x"), peering, theirs, deployment}})
	all, err := c.List(t.Context(), "")
	require.NoError(t, err)
	some, err := c.List(t.Context(), records.LabelPeering+"=b")
	require.NoError(t, err)
	if len(all) != 3 || len(some) != 2 {
		t.Errorf("%d objects, %d of peering b, want 3 and 2", len(all), len(some))
	}
}

func TestUnknownKind(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := c.Apply(t.Context(), &appsv1.StatefulSet{ObjectMeta: ourMeta("x")})
	assert.ErrorContains(t, "apply", err, "StatefulSet")
}

// TestDeleteOfManyTakesOneRequestEach: a cluster has a Lease for each node, and liqoctl makes 50 requests a second, so
// each deletion must take one request.
func TestDeleteOfManyTakesOneRequestEach(t *testing.T) {
	const many = 100
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	for i := range many {
		lease := &coordinationv1.Lease{ObjectMeta: ourMeta(fmt.Sprintf("node-%d", i))}
		_, err := api.CoordinationV1().Leases(c.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	objects, err := c.List(t.Context(), records.LabelComponent)
	if err != nil || len(objects) != many {
		t.Fatal(len(objects), err)
	}
	taken := objects[0]
	require.NoError(t, api.CoordinationV1().Leases(c.Namespace).Delete(t.Context(), taken.GetName(), metav1.DeleteOptions{}))
	api.ClearActions()
	changes, err := c.Delete(t.Context(), objects...)
	require.NoError(t, err)
	assert.Equal(t, "changes", map[kube.Action]int{kube.Deleted: many - 1, kube.Absent: 1}, actions(changes))
	if n := len(api.Actions()); n > many+2 {
		t.Errorf("%d requests for %d objects", n, many)
	}
}

// TestDeleteWaitsForFinalizers: a listed object with a finalizer still exists after the delete request.
func TestDeleteWaitsForFinalizers(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := c.Apply(t.Context(), fabric(""))
	require.NoError(t, err)
	api.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	objects, err := c.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Delete(ctx, objects...)
	assert.ErrorContains(t, "delete", err, "still there")
}
