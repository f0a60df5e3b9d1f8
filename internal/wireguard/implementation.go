// Package wireguard has names that records, manifests, the makers of keys and the driver of tunnels share. It imports
// no other package of this module.
package wireguard

import (
	"fmt"
	"slices"
)

// Names of a gateway's keys in its Secret.
const (
	PrivateKey   = "privateKey"
	PresharedKey = "presharedKey"
)

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
