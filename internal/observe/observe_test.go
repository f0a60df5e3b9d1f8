package observe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// TestPeeringWith: a damaged record with the name of a cluster does not take the place of the record with its ID, in
// whatever order they are read.
func TestPeeringWith(t *testing.T) {
	peer := records.Fabric{ClusterID: "1", Name: "b"}
	of := func(id string) *records.Peering {
		return &records.Peering{Peer: records.Peer{ClusterID: id}}
	}
	for want, peerings := range map[string]map[string]*records.Peering{
		"x": {"b": nil, "x": of("1"), "y": of("2")}, // x: another name for b
		"a": {"a": of("1"), "b": nil, "x": of("1")},
		"b": {"b": nil, "x": of("2")},
		"":  {"b": of("2")},
	} {
		for range 50 {
			s := observe.Snapshot{Peerings: peerings}
			assert.Equal(t, "peering with b", want, s.PeeringWith(peer))
		}
	}
}

// TestPodProblemIsOwn checks that the reason for which a pod of one peering was not created is not given for another
// peering with a similar name.
func TestPodProblemIsOwn(t *testing.T) {
	refused := func(owner string) runtime.Object {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: owner}, Reason: "FailedCreate", Message: "quota",
			InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: owner},
		}
	}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{refused("gateway-b-1-5f6d7"), refused("gateway2-b-5f6d7")}})
	s := read.Take(t.Context(), c, observe.Pods)
	assert.NoError(t, s.Errors[observe.Pods])
	for workload, want := range map[string]bool{"gateway-b-1": true, "gateway2-b": true, "gateway-b": false, "gateway-b-2": false, records.NodeName: false} {
		assert.Equal(t, workload, want, s.PodProblem(workload, "x=y") != nil)
	}
}
