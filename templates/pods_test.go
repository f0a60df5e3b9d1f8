package templates

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// everySetting has a value in every field.
func everySetting() Pods {
	return Pods{
		Labels: map[string]string{"team": "network"}, Annotations: map[string]string{"example.com/note": "a, b"},
		ImagePullSecrets: []string{"registry"}, PriorityClass: new("network"),
		Requests:            corev1.ResourceList{"cpu": resource.MustParse("50m")},
		Limits:              corev1.ResourceList{"memory": resource.MustParse("512Mi")},
		GatewayNodeSelector: map[string]string{"example.com/edge": "true"},
		GatewayTolerations:  []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
}

// workloads renders all workloads of liqonet with the same settings.
func workloads(t *testing.T, p Pods) []Object {
	t.Helper()
	installation, err := Base(BaseValues{Namespace: "liqonet", Image: image, Pods: p})
	require.NoError(t, err)
	gateway, err := gateway(func(v *GatewayValues) { v.Pods = p })()
	require.NoError(t, err)
	set, err := Verify(VerifyValues{Namespace: "liqonet", Image: image, Pods: p})
	require.NoError(t, err)
	return []Object{pick[*appsv1.DaemonSet](t, installation), pick[*appsv1.Deployment](t, gateway), set}
}

func TestPodSettings(t *testing.T) {
	golden.Check(t, "pods.golden", string(text(t, workloads(t, everySetting()))))
}

// TestPodSettingsRoundTrip: the settings of a workload can be read from it.
func TestPodSettingsRoundTrip(t *testing.T) {
	for _, want := range []Pods{{}, everySetting()} {
		for _, o := range workloads(t, want) {
			got, err := ReadPods(o)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%T %s: %v, settings (-want +got):\n%s", o, o.GetName(), err, diff)
			}
		}
	}
}

func TestPodSettingsOverOthers(t *testing.T) {
	all := everySetting()
	assert.Equal(t, "nothing over all settings", all, setting.Over(Pods{}, all))
	want := everySetting()
	want.Labels, want.PriorityClass = map[string]string{}, new("")
	assert.Equal(t, "two cleared settings over all", want, setting.Over(Pods{Labels: map[string]string{}, PriorityClass: new("")}, all))
}

// TestSelectorsHaveNoSettings: settings must not be part of a selector, which is immutable.
func TestSelectorsHaveNoSettings(t *testing.T) {
	for i, o := range workloads(t, everySetting()) {
		plain := workloads(t, Pods{})[i]
		selector := func(o Object) (s *metav1.LabelSelector) {
			switch o := o.(type) {
			case *appsv1.DaemonSet:
				s = o.Spec.Selector
			case *appsv1.Deployment:
				s = o.Spec.Selector
			}
			return s
		}
		assert.Equal(t, "selector of "+o.GetName(), selector(plain), selector(o))
	}
}

func TestHostilePodSettings(t *testing.T) {
	for name, p := range map[string]Pods{
		"label":           {Labels: map[string]string{"a b": ""}},
		"label's value":   {Labels: map[string]string{"a": "b c"}},
		"own label":       {Labels: map[string]string{"liqonet.io/component": "gateway"}},
		"own annotation":  {Annotations: map[string]string{AnnotationPods: ""}},
		"annotation":      {Annotations: map[string]string{"a\nb": ""}},
		"node label":      {GatewayNodeSelector: map[string]string{"a": "b\nc"}},
		"pull secret":     {ImagePullSecrets: []string{"a/b"}},
		"priority class":  {PriorityClass: new("A b")},
		"another request": {Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}},
	} {
		if _, err := Base(BaseValues{Namespace: "liqonet", Image: image, Pods: p}); err == nil {
			t.Errorf("%s of the installation was taken", name)
		}
		if _, err := gateway(func(v *GatewayValues) { v.Pods = p })(); err == nil {
			t.Errorf("%s of a gateway was taken", name)
		}
	}
	damaged := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationPods: `{"hostNetwork":true}`}}}
	if _, err := ReadPods(damaged); err == nil {
		t.Error("an unknown setting was read")
	}
}
