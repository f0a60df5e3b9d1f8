package claim

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

func testNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

func TestCandidates(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/27") // nodes have 10.80.0.0/28
	firsts := map[netip.Addr]bool{}
	for i := range 20 {
		seen := map[netip.Addr]bool{}
		for a := range candidates(internal, fmt.Sprint("node-", i), netip.Addr{}) {
			if len(seen) == 0 {
				firsts[a] = true
			}
			if seen[a] {
				t.Errorf("%s twice", a)
			}
			seen[a] = true
		}
		if len(seen) != 14 || seen[netip.MustParseAddr("10.80.0.0")] || seen[netip.MustParseAddr("10.80.0.15")] || seen[netip.MustParseAddr("10.80.0.16")] {
			t.Errorf("candidates %v: want 10.80.0.1 to 10.80.0.14", seen)
		}
	}
	if len(firsts) < 5 {
		t.Errorf("20 nodes begin with %d different addresses", len(firsts))
	}
}

func TestClaimAddress(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/16")
	client := fake.NewClientset()
	node := testNode("n1")
	lease, a, err := Address(t.Context(), client, "liqonet", node, internal, netip.Addr{})
	require.NoError(t, err)
	if !cidr.Lower(internal).Contains(a) || lease.Name != records.AddressLeaseName(a) {
		t.Errorf("address %s, Lease %s", a, lease.Name)
	}
	if owner := lease.OwnerReferences; len(owner) != 1 || owner[0].UID != node.UID || owner[0].Kind != "Node" {
		t.Errorf("owners %v: want the Node, with which the Lease goes", owner)
	}
	if _, again, err := Address(t.Context(), client, "liqonet", node, internal, netip.Addr{}); err != nil || again != a {
		t.Errorf("asked again: %s, %v; want %s", again, err, a)
	}
	moved := netip.MustParsePrefix("10.90.0.0/16")
	if _, other, err := Address(t.Context(), client, "liqonet", node, moved, netip.Addr{}); err != nil || !cidr.Lower(moved).Contains(other) ||
		cidr.Number(other)%2 == cidr.Number(a)%2 { // which the policy for claims rejects
		t.Errorf("of another range: %s, %v", other, err)
	}
	reborn := testNode("n1")
	reborn.UID = "uid-of-another"
	if _, again, err := Address(t.Context(), client, "liqonet", reborn, internal, netip.Addr{}); err != nil || again != a {
		t.Errorf("a Node made anew: %s, %v; want %s", again, err, a)
	}
	if _, other, err := Address(t.Context(), client, "liqonet", testNode("n2"), internal, a); err != nil || other == a {
		t.Errorf("another node that prefers the address: %s, %v", other, err)
	}
}

// TestClaimAddressInConflict checks that concurrent nodes get different addresses, until none is left.
func TestClaimAddressInConflict(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/27") // 14 addresses for nodes
	client := fake.NewClientset()
	var mu sync.Mutex
	holders := map[netip.Addr]string{}
	var everyone sync.WaitGroup
	for i := range 14 {
		everyone.Go(func() {
			name := fmt.Sprint("n", i)
			_, a, err := Address(t.Context(), client, "liqonet", testNode(name), internal, netip.Addr{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || holders[a] != "" {
				t.Errorf("%s: address %s, which %q has: %v", name, a, holders[a], err)
			}
			holders[a] = name
		})
	}
	everyone.Wait()
	_, _, err := Address(t.Context(), client, "liqonet", testNode("late"), internal, netip.Addr{})
	if err == nil || !strings.Contains(err.Error(), "10.80.0.0/28 are taken") {
		t.Errorf("node too many: %v", err)
	}
}

func TestClaimAddressErrors(t *testing.T) {
	for verb, part := range map[string]string{"list": "list Leases: ", "create": "claim internal address 10.80."} {
		client := fake.NewClientset()
		broken := errors.New("connection refused")
		client.PrependReactor(verb, "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
		_, _, err := Address(t.Context(), client, "liqonet", testNode("n1"), netip.MustParsePrefix("10.80.0.0/16"), netip.Addr{})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
