package peering

import (
	"crypto/hpke"
	"fmt"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// seal has the keys with which two halves of a command pass a preshared key, by RFC 9180. A preshared key protects
// recorded packets against a quantum computer, so its transport must resist one as well.
type seal struct {
	private hpke.PrivateKey // nil: not made yet
	peer    hpke.PublicKey  // nil: not known yet
	latest  *records.Sealed // sealing is random: a key is sealed once, so that one offer is like the next
}

func newSeal() (seal, error) {
	private, err := hpke.MLKEM768X25519().GenerateKey()
	if err != nil {
		return seal{}, fmt.Errorf("make a key pair for offers: %w", err)
	}
	return seal{private: private}, nil
}

// public returns the public key; nil: there is none yet.
func (s *seal) public() []byte {
	if s.private == nil {
		return nil
	}
	return s.private.PublicKey().Bytes()
}

// accept takes the peer's public key.
func (s *seal) accept(public []byte) (err error) {
	s.peer, err = hpke.MLKEM768X25519().NewPublicKey(public)
	return err
}

// sealed returns the member's preshared key for the peer; nil: there is none yet.
func (m *member) sealed() *records.Sealed {
	preshared := m.preshared()
	if preshared == nil || m.seal.peer == nil {
		return nil
	}
	if id := inventory.PresharedID(preshared); m.seal.latest == nil || m.seal.latest.ID != id {
		key := preshared()
		text, err := hpke.Seal(m.seal.peer, hpke.HKDFSHA256(), hpke.AES256GCM(), sealInfo(m.id, m.peer.Cluster.ID), key[:])
		if err != nil {
			return nil // the peer misses it
		}
		m.seal.latest = &records.Sealed{ID: id, Ciphertext: text}
	}
	return m.seal.latest
}

// unseal returns the preshared key of the peer's offer; nil: it has none.
func (m *member) unseal() (inventory.Secret, error) {
	offered := m.peer.Preshared
	if offered == nil {
		return nil, nil
	}
	text, err := hpke.Open(m.seal.private, hpke.HKDFSHA256(), hpke.AES256GCM(), sealInfo(m.peer.Cluster.ID, m.id), offered.Ciphertext)
	var preshared inventory.Secret
	if err == nil {
		preshared, err = inventory.HideBytes(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read the preshared key that cluster %q offers: %w", m.peer.Cluster.Name, err)
	}
	return preshared, nil
}

// sealInfo binds a ciphertext to who sealed it and for whom.
func sealInfo(from, to string) []byte {
	return fmt.Appendf(nil, "liqonet preshared key, %q to %q", from, to)
}
