//go:build linux && lab

package node

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// healingLimit is the time within which external changes to a Lease are undone: usually two seconds. If an owner
// was deleted, the garbage collector needs time, and so does a busy machine.
const healingLimit = 5 * time.Minute

// TestLabLease deletes and alters the Lease of a node in a real API server: there, labels remove an object from a
// watch, and a deleted owner deletes it.
func TestLabLease(t *testing.T) {
	const namespace, name = "healing-lease", "healing-node"
	client := sample.Real(t, namespace)
	nodes := client.CoreV1().Nodes()
	makeNode := func() error {
		_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, makeNode())
	k := keepLease(t, client, namespace, name)
	leases := client.CoordinationV1().Leases(namespace)
	patch := func(text string) func(*coordinationv1.Lease) error {
		return func(l *coordinationv1.Lease) error {
			_, err := leases.Patch(t.Context(), l.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
			return err
		}
	}
	k.await("a Lease", sample.Patience)
	for _, act := range []struct {
		what string
		do   func(*coordinationv1.Lease) error
		keep bool // the number stays
	}{
		{"deleted", func(l *coordinationv1.Lease) error { return leases.Delete(t.Context(), l.Name, metav1.DeleteOptions{}) }, true},
		{"without the node's label", patch(`{"metadata":{"labels":{"liqonet.io/node":null}}}`), true},
		{"with another node's label", patch(`{"metadata":{"labels":{"liqonet.io/node":"x"}}}`), true},
		{"without component", patch(`{"metadata":{"labels":{"liqonet.io/component":null}}}`), true},
		{"of another component", patch(`{"metadata":{"labels":{"liqonet.io/component":"gateway"}}}`), true},
		{"without owner", patch(`{"metadata":{"ownerReferences":null}}`), true},
		{"without report", patch(`{"metadata":{"annotations":null}}`), true},
		{"with a damaged report", patch(`{"metadata":{"annotations":{"liqonet.io/node":"x"}}}`), true},
		{"of another holder", patch(`{"spec":{"holderIdentity":"x"}}`), false},
		{"of a Node made anew", func(*coordinationv1.Lease) error {
			if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			return makeNode()
		}, true},
	} {
		t.Run(act.what, func(t *testing.T) {
			before := k.await("the Lease before", sample.Patience)
			require.NoError(t, act.do(before))
			var after *coordinationv1.Lease
			took := wait.Until(t, "the Lease again", healingLimit, func() bool {
				after = k.lease()
				return after != nil && after.ResourceVersion != before.ResourceVersion
			})
			t.Logf("after %s", took.Round(time.Millisecond))
			if same := after.Name == before.Name; same != act.keep {
				t.Errorf("it is %s and was %s", after.Name, before.Name)
			}
		})
	}
}
