package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestLive: Compare reports missing and differing objects, and ignores additions by other owners or the API server.
func TestLive(t *testing.T) {
	meta := ourMeta("x")
	want := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}}}
	for name, test := range map[string]struct {
		change func(*rbacv1.Role, *corev1.Service)
		want   string // for the Role, with contents
		labels string // for the Role, labels only
	}{
		"as desired": {func(*rbacv1.Role, *corev1.Service) {}, "", ""},
		"foreign fields": {func(r *rbacv1.Role, s *corev1.Service) {
			r.Annotations, r.Labels["theirs"] = map[string]string{"x": "y"}, "x"
			s.Spec.ClusterIP = "10.96.0.7"
		}, "", ""},
		"additional verb": {func(r *rbacv1.Role, _ *corev1.Service) { r.Rules[0].Verbs = []string{"get", "delete"} }, "rules[0].verbs", ""},
		"another verb":    {func(r *rbacv1.Role, _ *corev1.Service) { r.Rules[0].Verbs[0] = "list" }, `rules[0].verbs[0]: "list", want "get"`, ""},
		"no rules":        {func(r *rbacv1.Role, _ *corev1.Service) { r.Rules = nil }, "rules: none", ""},
		"another label":   {func(r *rbacv1.Role, _ *corev1.Service) { r.Labels["liqonet.io/component"] = "y" }, "metadata.labels", "metadata.labels"},
		"without a label": {func(r *rbacv1.Role, _ *corev1.Service) { r.Labels = nil }, "metadata.labels", "metadata.labels"},
		"of another name": {func(r *rbacv1.Role, _ *corev1.Service) { r.Name = "y" }, "Role x is missing", "Role x is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			role, svc := want.DeepCopy(), service.DeepCopy()
			test.change(role, svc)
			c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{role, svc}})
			live, err := c.ReadLive(t.Context(), []kube.Object{&rbacv1.Role{}, &corev1.Service{}}, nil)
			require.NoError(t, err)
			for contents, part := range map[bool]string{true: test.want, false: test.labels} {
				got := live.Compare(want, contents)
				if (got == "") != (part == "") || !strings.Contains(got, part) {
					t.Errorf("contents %v: %q; want %q", contents, got, part)
				}
			}
			if got := live.Compare(service, true); got != "" {
				t.Errorf("the Service: %q", got)
			}
		})
	}
}

// TestLiveUnread: Compare reports nothing for objects that the user may not read.
func TestLiveUnread(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	api.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource().Resource}, "", nil)
	})
	role, wide := &rbacv1.Role{ObjectMeta: ourMeta("x")}, &rbacv1.ClusterRole{ObjectMeta: ourMeta("x")}
	wide.Namespace = ""
	live, err := c.ReadLive(t.Context(), []kube.Object{&rbacv1.Role{}}, []kube.Object{wide})
	require.NoError(t, err)
	for _, o := range []kube.Object{role, wide} {
		if got := live.Compare(o, true); got != "" {
			t.Errorf("%T: %q", o, got)
		}
	}
}
