package removal

import (
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestResetWaitsForHelpersThatHaveJustStarted: a node whose helper holds a number and has not reported yet may have
// changed its kernel.
func TestResetWaitsForHelpersThatHaveJustStarted(t *testing.T) {
	begun := "n3"
	leases := []*coordinationv1.Lease{
		{Spec: coordinationv1.LeaseSpec{HolderIdentity: &begun}},
		leaseOf(t, records.Node{Version: 1, Name: "n1", Number: 1, Clean: true}),
		leaseOf(t, records.Node{Version: 1, Name: "n2", Number: 2}),
	}
	live := map[string]bool{"n1": true, "n2": true, "n3": true}
	missing, notReady, err := unconfirmed(leases, live, func(n records.Node) bool { return n.Clean })
	if err != nil || !slices.Equal(missing, []string{"n2", "n3"}) || len(notReady) > 0 {
		t.Errorf("missing %v, not Ready %v, %v", missing, notReady, err)
	}
}

func leaseOf(t *testing.T, n records.Node) *coordinationv1.Lease {
	t.Helper()
	text, err := records.Encode(n)
	require.NoError(t, err)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.NodeLeaseName(n.Number), Annotations: map[string]string{records.AnnotationNode: text},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name},
	}
}
