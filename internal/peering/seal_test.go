package peering

import (
	"testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestSealedKey checks that the peer alone reads a preshared key, and only in an offer of the cluster that sealed it.
func TestSealedKey(t *testing.T) {
	half := func(id string) *member {
		m := &member{site: site{cluster: &kube.Cluster{}, id: id, name: id}}
		var err error
		m.seal, err = newSeal()
		require.NoError(t, err)
		return m
	}
	meet := func(m, peer *member) {
		m.peer = peer.offer()
		require.NoError(t, m.seal.accept(m.peer.Seal))
	}
	a, b, other := half("a"), half("b"), half("b")
	made, err := inventory.CompleteKeys(make([]*inventory.Keys, 1), nil)
	require.NoError(t, err)
	a.keys, a.replaced = []*inventory.Keys{&made[0]}, []bool{false}
	if a.sealed() != nil {
		t.Error("sealed without the public key of a peer")
	}
	meet(a, b)
	meet(b, a)
	if got, err := b.unseal(); err != nil || got() != made[0].Preshared() {
		t.Errorf("the peer reads another key: %v", err)
	}
	if first := a.sealed(); first != a.sealed() {
		t.Error("the same key is sealed twice")
	}
	meet(other, a)
	if _, err := other.unseal(); err == nil {
		t.Error("another half with the peer's name reads it")
	}
	b.peer.Cluster.ID = "c"
	if _, err := b.unseal(); err == nil {
		t.Error("it is read as an offer of another cluster")
	}
	for _, public := range [][]byte{nil, {1}, make([]byte, 32)} {
		if err := a.seal.accept(public); err == nil {
			t.Errorf("accepted a public key of %d bytes", len(public))
		}
	}
}
