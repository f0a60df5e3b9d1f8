package templates

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// pick returns the only object of a type.
func pick[T Object](t *testing.T, objects []Object) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestPodsHaveNetAdminAlone(t *testing.T) {
	for name, render := range renderings {
		if name == "verify" || name == "pathtest" {
			continue // have fewer: see TestVerifyHasNoRights, TestPathTestHasNoRights
		}
		objects, err := render()
		require.NoError(t, err)
		for _, o := range objects {
			var pod corev1.PodSpec
			node := false
			switch workload := o.(type) {
			case *appsv1.DaemonSet:
				pod, node = workload.Spec.Template.Spec, true
			case *appsv1.Deployment:
				pod = workload.Spec.Template.Spec
			default:
				continue
			}
			if pod.HostNetwork != node || pod.HostPID || pod.HostIPC {
				t.Errorf("%s: host namespaces: network %v, pid %v, ipc %v", name, pod.HostNetwork, pod.HostPID, pod.HostIPC)
			}
			if pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: seccomp %v", name, pod.SecurityContext.SeccompProfile)
			}
			for _, container := range pod.Containers {
				s := container.SecurityContext
				if !slices.Equal(s.Capabilities.Add, []corev1.Capability{"NET_ADMIN"}) || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
					t.Errorf("%s: capabilities %v", name, s.Capabilities)
				}
				if s.Privileged != nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: security context %v", name, s)
				}
			}
			for _, volume := range pod.Volumes {
				if volume.HostPath != nil && (node || volume.HostPath.Path != "/dev/net/tun") {
					t.Errorf("%s: host path %s", name, volume.HostPath.Path)
				}
			}
		}
	}
}

func TestTUNOnlyWhereUserspaceMayRun(t *testing.T) {
	for implementation, want := range map[records.Implementation]int{records.Kernel: 2, records.Userspace: 3, records.Auto: 3} {
		objects, err := gateway(func(v *GatewayValues) { v.Settings.Implementation = &implementation })()
		require.NoError(t, err)
		pod := pick[*appsv1.Deployment](t, objects).Spec.Template.Spec
		if len(pod.Volumes) != want || len(pod.Containers[0].VolumeMounts) != want {
			t.Errorf("%s: %d volumes, %d mounts, want %d", implementation, len(pod.Volumes), len(pod.Containers[0].VolumeMounts), want)
		}
	}
}

func readsOnly(rule rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rule.Verbs, func(verb string) bool {
		return !slices.Contains([]string{"get", "list", "watch"}, verb)
	})
}

func TestRights(t *testing.T) {
	everything, err := base()
	require.NoError(t, err)
	clusterRole := pick[*rbacv1.ClusterRole](t, everything)
	for _, rule := range clusterRole.Rules {
		if !readsOnly(rule) {
			t.Errorf("cluster-wide: %v", rule)
		}
	}
	server, err := gateway(func(*GatewayValues) {})()
	require.NoError(t, err)
	role := pick[*rbacv1.Role](t, server)
	for _, o := range server {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			t.Errorf("a gateway has cluster-wide rights: %s", o.GetName())
		}
	}
	for _, rule := range slices.Concat(clusterRole.Rules, role.Rules, pick[*rbacv1.Role](t, everything).Rules) {
		if words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs); slices.Contains(words, "*") || slices.Contains(words, "secrets") {
			t.Errorf("rule %v", rule)
		}
	}
	for _, rule := range role.Rules {
		if slices.Equal(rule.Resources, []string{"events"}) {
			if !slices.Equal(rule.Verbs, []string{"create"}) {
				t.Errorf("a gateway changes events of others: %v", rule)
			}
			continue
		}
		writes := !readsOnly(rule)
		if named := slices.Equal(rule.ResourceNames, []string{"gateway-milan", "status-milan"}); writes != named {
			t.Errorf("rule %v", rule)
		}
		if slices.Contains(rule.Resources, "configmaps") && len(rule.ResourceNames) == 0 {
			t.Errorf("a gateway reads records of other peerings: %v", rule)
		}
	}
}

// TestService: only the server has a Service, and it selects the gateway's pods.
func TestService(t *testing.T) {
	objects, err := gateway(func(*GatewayValues) {})()
	require.NoError(t, err)
	service, deployment := pick[*corev1.Service](t, objects), pick[*appsv1.Deployment](t, objects)
	for key, value := range service.Spec.Selector {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("selector %s=%s does not match pods %v", key, value, deployment.Spec.Template.Labels)
		}
	}
	objects, err = gateway(func(v *GatewayValues) { v.Role = records.Client })()
	require.NoError(t, err)
	for _, o := range objects {
		if _, found := o.(*corev1.Service); found {
			t.Error("the client's gateway has a Service")
		}
	}
}

// TestHostileValues: strings from a kubeconfig or a peer's file are rejected if they are no valid names.
func TestHostileValues(t *testing.T) {
	hostile := []string{
		"", "a\nb: c", "x}, y: {z", "../etc", "a/b", "UPPER", "-a", "a-", "a.b", "{{.}}", "a\x00", "å", "*",
		strings.Repeat("a", 64), "milan\n---\nkind: Secret",
	}
	for _, text := range hostile {
		if _, err := Base(BaseValues{Namespace: text, Image: image}); err == nil {
			t.Errorf("namespace %q was taken", text)
		}
		for field, change := range map[string]func(*GatewayValues){
			"namespace":      func(v *GatewayValues) { v.Namespace = text },
			"peering":        func(v *GatewayValues) { v.Peering = text },
			"role":           func(v *GatewayValues) { v.Role = records.Role(text) },
			"implementation": func(v *GatewayValues) { v.Settings.Implementation = new(records.Implementation(text)) },
			"service type":   func(v *GatewayValues) { v.Settings.ServiceType = new(records.ServiceType(text)) },
		} {
			if _, err := gateway(change)(); err == nil {
				t.Errorf("%s %q was taken", field, text)
			}
		}
	}
	for _, text := range []string{"", "a b", "a\nimagePullPolicy: Always", "bild:ä"} {
		if _, err := Base(BaseValues{Namespace: "liqonet", Image: text}); err == nil {
			t.Errorf("image %q was taken", text)
		}
		if _, err := Verify(VerifyValues{Namespace: "liqonet", Image: text}); err == nil {
			t.Errorf("image %q of the verification was taken", text)
		}
		if _, err := PathTestServer(PathTestValues{Namespace: "liqonet", Image: text}); err == nil {
			t.Errorf("image %q of the path test was taken", text)
		}
	}
}

// TestAnnotationStaysAValue: the value of an annotation is free text. It cannot become other fields.
func TestAnnotationStaysAValue(t *testing.T) {
	text := "x\nspec:\n  type: LoadBalancer"
	objects, err := gateway(func(v *GatewayValues) { v.Settings.ServiceAnnotations = map[string]string{"example.com/a": text} })()
	require.NoError(t, err)
	service := pick[*corev1.Service](t, objects)
	if service.Annotations["example.com/a"] != text || service.Spec.Type != corev1.ServiceTypeNodePort {
		t.Errorf("service %v", service)
	}
}

func TestSettingsThatConflict(t *testing.T) {
	for _, v := range []records.GatewaySettings{
		{ServiceType: new(records.ServiceType("ExternalName"))},
		{ServiceType: new(records.ClusterIP), NodePort: new(uint16(30000))},
		{ServiceType: new(records.NodePort), LoadBalancerIP: new(netip.MustParseAddr("192.0.2.1"))},
		{ServiceAnnotations: map[string]string{"a=b": "c"}},
	} {
		if _, err := gateway(func(g *GatewayValues) { g.Settings = v })(); err == nil {
			t.Errorf("settings %+v were taken", v)
		}
	}
}
