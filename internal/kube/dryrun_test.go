package kube_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestDryRunReadsWhatItWrote: every kind of read returns the dry run's own writes, and the plan combines them. The
// cluster is unchanged.
func TestDryRunReadsWhatItWrote(t *testing.T) {
	gone := &corev1.ConfigMap{ObjectMeta: ourMeta("gone"), Data: map[string]string{"k": "v"}}
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("mtu: 1500\n"), gone}})
	dry := c.DryRun()
	keys := &corev1.Secret{ObjectMeta: ourMeta("keys"), Data: map[string][]byte{"privateKey": []byte("new")}}
	_, err := dry.Apply(t.Context(), fabric("mtu: 1450\n"), keys)
	require.NoError(t, err)
	change, err := kube.Swap(t.Context(), dry, fabric(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if live == nil || live.Data[records.DataKey] != "mtu: 1450\n" {
			t.Errorf("the swap read %v", live)
		}
		return fabric("mtu: 1400\n"), nil
	})
	if err != nil || change.Action != kube.Changed {
		t.Fatal(change, err)
	}
	_, err = dry.Delete(t.Context(), gone)
	require.NoError(t, err)
	more := &corev1.ConfigMap{ObjectMeta: ourMeta("more")}
	for _, data := range []map[string]string{nil, {"k": "v"}} {
		_, err := kube.Swap(t.Context(), dry, more, func(*corev1.ConfigMap) (*corev1.ConfigMap, error) {
			more.Data = data
			return more, nil
		})
		require.NoError(t, err)
	}
	listed, err := dry.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	var names []string
	for _, o := range listed {
		names = append(names, o.GetName())
	}
	assert.Equal(t, "names", []string{"fabric", "more", "keys"}, names)
	planned := dry.Planned()
	var got []string
	for _, p := range planned {
		got = append(got, p.String())
	}
	want := []string{"changed ConfigMap liqonet/fabric", "created ConfigMap liqonet/more", "created Secret liqonet/keys", "deleted ConfigMap liqonet/gone"}
	assert.Equal(t, "plan", want, got)
	if fields := planned[0].Fields; len(fields) != 1 || fields[0].String() != "data.record.mtu: 1500 -> 1400" {
		t.Errorf("fields %v", fields)
	}
	for _, a := range api.Actions() {
		if patch, ok := a.(interface{ GetPatchOptions() metav1.PatchOptions }); ok && len(patch.GetPatchOptions().DryRun) > 0 {
			continue
		}
		if v := a.GetVerb(); v != "get" && v != "list" {
			t.Errorf("request %s %s", v, a.GetResource().Resource)
		}
	}
}

// TestDryRunDoesNotWait: waits for missing objects end immediately.
func TestDryRunDoesNotWait(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("mtu: 1500\n")}})
	check := func(all []*corev1.ConfigMap) (string, error) {
		if len(all) == 0 {
			return "it is not there", nil
		}
		return "", nil
	}
	assert.NoError(t, kube.Wait(t.Context(), c.DryRun(), kube.Named("fabric"), "the fabric", check))
	err := kube.Wait(t.Context(), c.DryRun(), kube.Named("none"), "nothing", check)
	if err == nil || err.Error() != "wait for nothing: known after apply" {
		t.Error(err)
	}
}

// TestDryRunWithConcurrentWriters: a dry run succeeds if other clients write an object before or after it has read the
// object.
func TestDryRunWithConcurrentWriters(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := c.Apply(t.Context(), fabric("mtu: 1500\n"))
	require.NoError(t, err)
	dry := c.DryRun()
	for i, mtu := range []string{"1400", "1300"} {
		others := 1
		_, err := kube.Swap(t.Context(), dry, fabric(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			for ; others > 0; others-- {
				_, err := c.Apply(t.Context(), fabric("mtu: 1500\nname: "+strconv.Itoa(i)+"\n"))
				require.NoError(t, err)
			}
			_, name, _ := strings.Cut(live.Data[records.DataKey], "\n")
			return fabric("mtu: " + mtu + "\n" + name), nil
		})
		require.NoError(t, err)
	}
	planned := dry.Planned()
	if len(planned) != 1 || len(planned[0].Fields) != 1 || planned[0].Fields[0].String() != "data.record.mtu: 1500 -> 1300" {
		t.Errorf("planned %+v", planned)
	}
}
