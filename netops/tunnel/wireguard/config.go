// Package wireguard is the driver of tunnels over WireGuard: a device with one peer. The kernel's WireGuard carries the
// packets if it is available, otherwise wireguard-go in this process. Both are configured and read the same way.
// Devices exist on Linux only.
package wireguard

import (
	"errors"
	"fmt"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/netops/tunnel"
)

// The implementations. Auto is the kernel's if it is available.
const (
	Auto      = string(wireguard.Auto)
	Kernel    = string(wireguard.Kernel)
	Userspace = string(wireguard.Userspace)
)

// Config is the desired state of the device. It can be printed and logged: its secrets are redacted.
type Config struct {
	tunnel.Config
	PrivateKey   Secret
	PresharedKey Secret      // the zero value: none
	PublicKey    wgtypes.Key // of the peer
}

const (
	maxLinkName = 15  // IFNAMSIZ - 1
	minMTU      = 576 // RFC 791: minimum of every IPv4 host
	maxMTU      = 65535 - 32 - 28
	maxInterval = 65535 * time.Second // 16 bits on the wire of wgctrl
)

// validate returns an error for the first invalid value.
func (c Config) validate() error {
	switch {
	case c.Implementation != "" && wireguard.Implementation(c.Implementation).Validate() != nil:
		return wireguard.Implementation(c.Implementation).Validate()
	case c.Name == "" || len(c.Name) > maxLinkName:
		return fmt.Errorf("link name %q: want 1 to %d bytes", c.Name, maxLinkName)
	case c.PrivateKey.IsZero():
		return errors.New("private key: missing")
	case c.MTU < minMTU || c.MTU > maxMTU:
		return fmt.Errorf("MTU %d: want %d to %d", c.MTU, minMTU, maxMTU)
	case c.ListenPort == 0 && len(c.Endpoints) == 0:
		return errors.New("listen port 0: a device without endpoints cannot be found")
	}
	return c.validatePeer()
}

func (c Config) validatePeer() error {
	switch {
	case c.PublicKey == (wgtypes.Key{}):
		return errors.New("peer's public key: missing")
	case c.KeepAlive < 0 || c.KeepAlive > maxInterval || c.KeepAlive%time.Second != 0:
		return fmt.Errorf("keepalive %v: want whole seconds up to %v", c.KeepAlive, maxInterval)
	}
	for _, prefix := range c.AllowedIPs {
		if !prefix.Addr().Is4() || prefix.Bits() == 0 || prefix != prefix.Masked() {
			return fmt.Errorf("allowed range %v: want an exact IPv4 prefix", prefix)
		}
	}
	return nil
}
