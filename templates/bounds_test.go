package templates

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// priorities are the priority classes of each component: without its helper a node's pods are cut off, without a
// gateway a peering is. Verification runs where no ResourceQuota admits critical pods. Tests have no higher priority
// than the components under test.
var priorities = map[string]string{
	records.ComponentFabric: "system-node-critical", records.ComponentVerify: "",
	records.ComponentGateway:    "system-cluster-critical",
	records.ComponentTestServer: "", records.ComponentTestPod: "", records.ComponentTestNode: "",
}

// lostNodes has the seconds for which the pods of a component stay on a lost node; for other components it is
// Kubernetes' default of 300. A peering may have no other gateway.
var lostNodes = map[string]map[string]int64{
	records.ComponentGateway: {corev1.TaintNodeNotReady: 30, corev1.TaintNodeUnreachable: 30},
}

// tolerated returns the taints that a pod tolerates for a limited time, with the seconds. It must not tolerate any
// without a limit.
func tolerated(t *testing.T, tolerations []corev1.Toleration) map[string]int64 {
	seconds := make(map[string]int64)
	for _, to := range tolerations {
		if to.Operator != corev1.TolerationOpExists || to.Effect != corev1.TaintEffectNoExecute || to.TolerationSeconds == nil {
			t.Errorf("toleration %v, want one for a time", to)
			continue
		}
		seconds[to.Key] = *to.TolerationSeconds
	}
	return seconds
}

// TestPodsAreBounded: every pod has resource requests and a memory limit, but no CPU limit, which would cause packet
// loss.
func TestPodsAreBounded(t *testing.T) {
	for name, render := range renderings {
		objects, err := render()
		require.NoError(t, err)
		for _, o := range objects {
			var pod corev1.PodSpec
			switch workload := o.(type) {
			case *appsv1.DaemonSet:
				pod = workload.Spec.Template.Spec
				if len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
					t.Errorf("%s: tolerations %v, want all", name, pod.Tolerations)
				}
			case *appsv1.Deployment:
				pod = workload.Spec.Template.Spec
				if got := tolerated(t, pod.Tolerations); !maps.Equal(got, lostNodes[o.GetLabels()[records.LabelComponent]]) {
					t.Errorf("%s: stays %v on nodes that are lost", name, got)
				}
			default:
				continue
			}
			if want := priorities[o.GetLabels()[records.LabelComponent]]; pod.PriorityClassName != want {
				t.Errorf("%s: priority class %q, want %q", name, pod.PriorityClassName, want)
			}
			for _, c := range pod.Containers {
				r := c.Resources
				if r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() || r.Limits.Memory().IsZero() || !r.Limits.Cpu().IsZero() {
					t.Errorf("%s: resources %v", name, r)
				}
			}
		}
	}
}

// TestPodSecurityLevelIsEnforced: the namespace has labels for the Pod Security level, for new and for existing pods.
func TestPodSecurityLevelIsEnforced(t *testing.T) {
	objects, err := base()
	require.NoError(t, err)
	labels := pick[*corev1.Namespace](t, objects).Labels
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if level := labels["pod-security.kubernetes.io/"+mode]; level != "privileged" {
			t.Errorf("%s: level %q", mode, level)
		}
	}
}
