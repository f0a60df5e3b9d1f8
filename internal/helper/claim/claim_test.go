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

	"liqonet.io/liqonet/internal/testbed/require"
)

func testNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

func TestCandidates(t *testing.T) {
	firsts := map[int]bool{}
	for i := range 20 {
		seen := map[int]bool{}
		for n := range candidates(14, fmt.Sprint("node-", i), 0) {
			if len(seen) == 0 {
				firsts[n] = true
			}
			if seen[n] {
				t.Errorf("%d twice", n)
			}
			seen[n] = true
		}
		if len(seen) != 14 || seen[0] || seen[15] {
			t.Errorf("candidates %v: want 1 to 14", seen)
		}
	}
	if len(firsts) < 5 {
		t.Errorf("20 nodes begin with %d different numbers", len(firsts))
	}
	for preferred, want := range map[int]bool{7: true, 14: true, 15: false, 0: false, -1: false} {
		for n := range candidates(14, "node-1", preferred) {
			if (n == preferred) != want {
				t.Errorf("the first of the candidates is %d, preferred %d", n, preferred)
			}
			break
		}
	}
}

func TestClaimNumber(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/16")
	client := fake.NewClientset()
	node := testNode("n1")
	lease, n, err := Number(t.Context(), client, "liqonet", node, internal, 0)
	require.NoError(t, err)
	if n < 127 || n > 32766 || lease.Name != fmt.Sprint("node-", n) { // the hash of its name
		t.Errorf("number %d, Lease %s", n, lease.Name)
	}
	if owner := lease.OwnerReferences; len(owner) != 1 || owner[0].UID != node.UID || owner[0].Kind != "Node" {
		t.Errorf("owners %v: want the Node, with which the Lease goes", owner)
	}
	for _, cidr := range []netip.Prefix{internal, netip.MustParsePrefix("10.90.0.0/16")} {
		if _, again, err := Number(t.Context(), client, "liqonet", node, cidr, 0); err != nil || again != n {
			t.Errorf("asked again for %s: %d, %v; want %d", cidr, again, err, n)
		}
	}
	narrow := netip.MustParsePrefix("10.90.0.0/24")
	if _, other, err := Number(t.Context(), client, "liqonet", node, narrow, n); err != nil || other < 1 || other > 126 ||
		other%2 == n%2 { // which the policy for claims rejects
		t.Errorf("of a narrower range: %d, %v", other, err)
	}
	reborn := testNode("n1")
	reborn.UID = "uid-of-another"
	if _, again, err := Number(t.Context(), client, "liqonet", reborn, internal, n); err != nil || again != n {
		t.Errorf("a Node made anew: %d, %v; want %d", again, err, n)
	}
	if _, other, err := Number(t.Context(), client, "liqonet", testNode("n2"), internal, n); err != nil || other == n {
		t.Errorf("another node that prefers the number: %d, %v", other, err)
	}
}

// TestClaimNumberInConflict checks that concurrent nodes get different numbers, until none is left.
func TestClaimNumberInConflict(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/27") // 14 numbers for nodes
	client := fake.NewClientset()
	var mu sync.Mutex
	holders := map[int]string{}
	var everyone sync.WaitGroup
	for i := range 14 {
		everyone.Go(func() {
			name := fmt.Sprint("n", i)
			_, n, err := Number(t.Context(), client, "liqonet", testNode(name), internal, 0)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || n < 1 || n > 14 || holders[n] != "" {
				t.Errorf("%s: number %d, which %q has: %v", name, n, holders[n], err)
			}
			holders[n] = name
		})
	}
	everyone.Wait()
	_, _, err := Number(t.Context(), client, "liqonet", testNode("late"), internal, 0)
	if err == nil || !strings.Contains(err.Error(), "all 14 of internal CIDR 10.80.0.0/27 are taken") {
		t.Errorf("node too many: %v", err)
	}
}

func TestClaimNumberErrors(t *testing.T) {
	for verb, part := range map[string]string{"list": "list Leases: ", "create": "claim number "} {
		client := fake.NewClientset()
		broken := errors.New("connection refused")
		client.PrependReactor(verb, "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
		_, _, err := Number(t.Context(), client, "liqonet", testNode("n1"), netip.MustParsePrefix("10.80.0.0/16"), 0)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
