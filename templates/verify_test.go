package templates

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/testbed/require"
)

func verification() ([]Object, error) {
	set, err := Verify(VerifyValues{Namespace: "liqonet", Image: image})
	return []Object{set}, err
}

func TestVerifyHasNoRights(t *testing.T) {
	set, err := Verify(VerifyValues{Namespace: "liqonet", Image: image, Remove: true})
	require.NoError(t, err)
	pod := set.Spec.Template.Spec
	if pod.ServiceAccountName != "" || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("it has a token for the API server")
	}
	if len(pod.Volumes) > 0 || pod.HostPID || pod.HostIPC {
		t.Errorf("it has volumes %v, pids %v, memory %v of its node", pod.Volumes, pod.HostPID, pod.HostIPC)
	}
	look, rest := pod.InitContainers[0], pod.Containers[0]
	if !slices.Equal(look.Args, []string{"helper", "verify", "--remove"}) {
		t.Errorf("it looks by %v", look.Args)
	}
	for name, c := range map[string]struct {
		security *corev1.SecurityContext
		has      []corev1.Capability
	}{"looks": {look.SecurityContext, []corev1.Capability{"NET_ADMIN"}}, "rests": {rest.SecurityContext, nil}} {
		s := c.security
		if !slices.Equal(s.Capabilities.Add, c.has) || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
			s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
			t.Errorf("it %s with %v", name, s)
		}
	}
}
