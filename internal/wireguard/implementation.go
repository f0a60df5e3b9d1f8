// Package wireguard has what records, manifests, the makers of keys and the driver of tunnels share. It imports
// no other package of this module.
package wireguard

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Names of a gateway's keys in its Secret.
const (
	PrivateKey   = "privateKey"
	PresharedKey = "presharedKey"
)

const keyLength = 32 // bytes

// Peer is what a record has of the remote end of a tunnel.
type Peer struct {
	PublicKey string `json:"publicKey"` // base64; "": not known yet
}

// Validate returns an error if the key is not one of WireGuard.
func (p Peer) Validate() error {
	if key, err := base64.StdEncoding.DecodeString(p.PublicKey); err != nil || len(key) != keyLength {
		return errors.New("tunnel: public key of the peer's gateway is no WireGuard key")
	}
	return nil
}

// KeyID identifies a key pair and a preshared key. It is safe to show: the preshared key, of which it has a hash, has
// 32 random bytes.
func KeyID(public string, preshared [32]byte) string {
	sum := sha256.Sum256(preshared[:])
	return public + "." + hex.EncodeToString(sum[:16])
}

// Implementation is what encrypts the tunnel's packets.
type Implementation string

// The implementations. Auto is the kernel's where there is one.
const (
	Auto      Implementation = "auto"
	Kernel    Implementation = "kernel"
	Userspace Implementation = "userspace"
)

// Validate returns an error for a name that is none of these.
func (i Implementation) Validate() error {
	if !slices.Contains([]Implementation{Auto, Kernel, Userspace}, i) {
		return fmt.Errorf("WireGuard implementation %q: want auto, kernel or userspace", i)
	}
	return nil
}
