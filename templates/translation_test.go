package templates

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func translation() ([]Object, error) {
	return Translation(TranslationValues{Namespace: "liqonet", Image: image, Certificate: []byte("certificate\n")})
}

// TestTranslationHasNoPrivileges: it needs none of the kernel, and of the API server only what it asks.
func TestTranslationHasNoPrivileges(t *testing.T) {
	objects, err := translation()
	if err != nil {
		t.Fatal(err)
	}
	pod := pick[*appsv1.Deployment](t, objects).Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod %+v", pod.SecurityContext)
	}
	for _, container := range pod.Containers {
		s := container.SecurityContext
		if len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Privileged != nil ||
			*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
			t.Errorf("container %+v", s)
		}
		if container.Ports[0].ContainerPort != TranslationPort || container.VolumeMounts[0].MountPath != AuthorityPath {
			t.Errorf("port %d, mount %s", container.Ports[0].ContainerPort, container.VolumeMounts[0].MountPath)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.Secret == nil {
			t.Errorf("volume %+v", volume)
		}
	}
	var rights []string
	bound := map[string]bool{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.RoleBinding:
			bound[o.RoleRef.Name] = true
		case *rbacv1.ClusterRoleBinding:
			bound[o.RoleRef.Name] = true
		}
	}
	for _, o := range objects {
		var rules []rbacv1.PolicyRule
		where := "liqonet"
		switch o := o.(type) {
		case *rbacv1.Role:
			rules = o.Rules
		case *rbacv1.ClusterRole:
			rules, where = o.Rules, "everywhere"
		}
		for _, rule := range rules {
			if bound[o.GetName()] {
				rights = append(rights, fmt.Sprintf("%s: %s %s", where, rule.Verbs, rule.Resources))
			}
		}
	}
	want := []string{"liqonet: [list watch] [configmaps]", "liqonet: [create] [localsubjectaccessreviews]", "everywhere: [create] [tokenreviews]"}
	if !slices.Equal(rights, want) {
		t.Errorf("rights %v, want %v", rights, want)
	}
}

// TestNewAuthorityReplacesPods: pods read their authority once.
func TestNewAuthorityReplacesPods(t *testing.T) {
	annotations := map[string]bool{}
	for _, certificate := range []string{"one", "other", "one"} {
		objects, err := Translation(TranslationValues{Namespace: "liqonet", Image: image, Certificate: []byte(certificate)})
		if err != nil {
			t.Fatal(err)
		}
		annotations[fmt.Sprint(pick[*appsv1.Deployment](t, objects).Spec.Template.Annotations)] = true
		if trusted := pick[*corev1.ConfigMap](t, objects); trusted.Data["ca.crt"] != certificate {
			t.Errorf("clients are to trust %q", trusted.Data)
		}
	}
	if len(annotations) != 2 {
		t.Errorf("%d kinds of pods for two authorities: %v", len(annotations), annotations)
	}
}
