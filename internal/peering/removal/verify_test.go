package removal

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/testbed/assert"
)

// TestReportsOfPodsThatSucceeded: only a pod that has succeeded has a report; the empty message of a failed one does
// not mean a clean node.
func TestReportsOfPodsThatSucceeded(t *testing.T) {
	pod := func(node string, code int32) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code},
		}}}
		return p
	}
	got := reported([]*corev1.Pod{pod("b", 0), pod("c", 1), {Spec: corev1.PodSpec{NodeName: "d"}}, pod("a", 0)})
	assert.Equal(t, "reports", []NodeRemains{{Name: "a"}, {Name: "b"}}, got)
}
