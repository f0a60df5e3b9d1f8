package templates

import (
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

func pathTest() ([]Object, error) {
	v := PathTestValues{Namespace: "liqonet", Image: image}
	server, err := PathTestServer(v)
	if err != nil {
		return nil, err
	}
	v.Nodes, v.Args = []string{"a-1", "a-2"}, []string{"--mtu", "1380"}
	pods, nodes, err := PathTestProbes(v)
	if err != nil {
		return nil, err
	}
	service, err := PathTestService("liqonet", "run")
	if err != nil {
		return nil, err
	}
	service.UID = "1234"
	return []Object{server, pods, nodes, service, PathTestEndpoints(service, []netip.Addr{netip.MustParseAddr("10.71.0.5")})}, nil
}

func TestPathTestHasNoRights(t *testing.T) {
	objects, err := pathTest()
	require.NoError(t, err)
	sets := 0
	for _, o := range objects {
		set, ok := o.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		sets++
		pod := set.Spec.Template.Spec
		if pod.ServiceAccountName != "" || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s has a token for the API server", set.Name)
		}
		if pod.HostNetwork != (set.Name == records.ComponentTestNode) || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 {
			t.Errorf("%s: network %v, pids %v, memory %v of its node, volumes %v", set.Name, pod.HostNetwork, pod.HostPID, pod.HostIPC, pod.Volumes)
		}
		if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.RunAsGroup == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %v", set.Name, s)
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			s := c.SecurityContext
			if len(s.Capabilities.Add) > 0 || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || s.Privileged != nil ||
				*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(c.Ports) > 0 {
				t.Errorf("%s: container %s: %v, ports %v", set.Name, c.Name, s, c.Ports)
			}
		}
	}
	if sets != 3 {
		t.Errorf("%d DaemonSets", sets)
	}
}

// TestPathTestServerOnNodes: a server for measurements runs in the host network and has a token.
func TestPathTestServerOnNodes(t *testing.T) {
	set, err := PathTestServer(PathTestValues{Namespace: "liqonet", Image: image, Host: true, Args: []string{"--token", "t"}})
	require.NoError(t, err)
	pod := set.Spec.Template.Spec
	if c := pod.Containers[0]; !pod.HostNetwork || strings.Join(c.Args, " ") != "helper test serve --token t" || len(c.SecurityContext.Capabilities.Add) > 0 || *pod.SecurityContext.RunAsUser == 0 {
		t.Errorf("network %v, %v, %v", pod.HostNetwork, c.Args, c.SecurityContext)
	}
}
