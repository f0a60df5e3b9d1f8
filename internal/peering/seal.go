package peering

import (
	"crypto/hpke"
	"fmt"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// seal is the key pair with which one half of a command reads what the other one seals for it, by RFC 9180. A preshared
// key protects recorded packets against a quantum computer, so its transport must resist one as well.
type seal struct{ private hpke.PrivateKey }

func newSeal() (seal, error) {
	private, err := hpke.MLKEM768X25519().GenerateKey()
	if err != nil {
		return seal{}, fmt.Errorf("make a key pair for offers: %w", err)
	}
	return seal{private}, nil
}

// public returns the public key; nil: there is no pair yet.
func (s seal) public() []byte {
	if s.private == nil {
		return nil
	}
	return s.private.PublicKey().Bytes()
}

// sealed returns the member's preshared key for the peer; nil: it has none yet, or no offer of the peer. Sealing is
// random: the same key is sealed once.
func (m *member) sealed() *records.Sealed {
	preshared := m.preshared()
	if preshared == nil || len(m.peer.Seal) == 0 {
		return nil
	}
	id := inventory.PresharedID(preshared)
	if m.envelope != nil && m.envelope.ID == id {
		return m.envelope
	}
	public, err := hpke.MLKEM768X25519().NewPublicKey(m.peer.Seal)
	if err != nil {
		return nil // the peer has to make a preshared key
	}
	key := preshared()
	text, err := hpke.Seal(public, hpke.HKDFSHA256(), hpke.AES256GCM(), sealInfo(m.id, m.peer.Cluster.ID), key[:])
	if err != nil {
		return nil
	}
	m.envelope = &records.Sealed{ID: id, Ciphertext: text}
	return m.envelope
}

// unseal returns the preshared key of the peer's offer; nil: it has none.
func (m *member) unseal() (inventory.Secret, error) {
	offered := m.peer.Preshared
	if offered == nil {
		return nil, nil
	}
	text, err := hpke.Open(m.seal.private, hpke.HKDFSHA256(), hpke.AES256GCM(), sealInfo(m.peer.Cluster.ID, m.id), offered.Ciphertext)
	if err == nil && len(text) != wgtypes.KeyLen {
		err = fmt.Errorf("%d bytes", len(text))
	}
	if err != nil {
		return nil, fmt.Errorf("read the preshared key that cluster %q offers: %w", m.peer.Cluster.Name, err)
	}
	return inventory.Hide(wgtypes.Key(text)), nil
}

// sealInfo binds a ciphertext to who sealed it and for whom.
func sealInfo(from, to string) []byte { return fmt.Appendf(nil, "liqonet preshared key, %q to %q", from, to) }
