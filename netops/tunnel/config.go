// Package tunnel manages the WireGuard device of a gateway: one link, one peer. The kernel's WireGuard carries the
// packets if it is available, otherwise wireguard-go in this process. Both are configured and read the same way.
//
// In scope: the link's existence, keys, the peer, its endpoints. The link's address, MTU and up state are in package
// netops, as are routes, filters and forwarding. The package does not depend on peerings. Devices exist on Linux only.
package tunnel

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/wireguard"
)

// Implementation is the implementation of WireGuard; the zero value is Auto.
type Implementation = wireguard.Implementation

// The implementations. Auto is the kernel's if it is available.
const (
	Auto      = wireguard.Auto
	Kernel    = wireguard.Kernel
	Userspace = wireguard.Userspace
)

// Config is the desired state of the device. It can be printed and logged: its secrets are redacted.
type Config struct {
	Implementation Implementation
	Name           string // of the link; 15 bytes at most
	PrivateKey     Secret
	PresharedKey   Secret // the zero value: none
	// ListenPort is the UDP port on which the device listens. Zero, allowed with endpoints only, lets the kernel choose
	// a port, and another one at each Renew, so that stale NAT entries on the path are no longer used.
	ListenPort uint16
	MTU        int // bytes, of the packets inside the tunnel
	Peer       PeerConfig
	// Closed removes the peer from the device: it neither sends nor accepts packets.
	Closed bool
}

// PeerConfig is the desired state of the remote end.
type PeerConfig struct {
	PublicKey wgtypes.Key
	// AllowedIPs are the ranges of the peer's source and destination addresses; IPv4, never all addresses.
	AllowedIPs []netip.Prefix
	// Endpoints are host:port, names or addresses, tried in turn. Empty: wait for packets of the peer, and reply to its
	// last address.
	Endpoints []string
	// KeepAlive is the interval of keepalives in whole seconds; zero: none.
	KeepAlive time.Duration
}

const (
	maxLinkName = 15  // IFNAMSIZ - 1
	minMTU      = 576 // RFC 791: minimum of every IPv4 host
	maxMTU      = 65535 - 32 - 28
	maxInterval = 65535 * time.Second // 16 bits on the wire of wgctrl
)

// Equal reports whether both configurations are the same.
func (c Config) Equal(o Config) bool {
	if !c.PrivateKey.Equal(o.PrivateKey) || !c.PresharedKey.Equal(o.PresharedKey) {
		return false
	}
	for _, each := range []*Config{&c, &o} { // the functions that hide secrets are never equal
		each.PrivateKey, each.PresharedKey = Secret{}, Secret{}
	}
	return reflect.DeepEqual(c, o)
}

// validate returns an error for the first invalid value.
func (c Config) validate() error {
	switch {
	case c.Implementation != "" && c.Implementation.Validate() != nil:
		return c.Implementation.Validate()
	case c.Name == "" || len(c.Name) > maxLinkName:
		return fmt.Errorf("link name %q: want 1 to %d bytes", c.Name, maxLinkName)
	case c.PrivateKey.IsZero():
		return errors.New("private key: missing")
	case c.MTU < minMTU || c.MTU > maxMTU:
		return fmt.Errorf("MTU %d: want %d to %d", c.MTU, minMTU, maxMTU)
	case c.ListenPort == 0 && len(c.Peer.Endpoints) == 0:
		return errors.New("listen port 0: nobody could find a device without endpoints")
	}
	return c.Peer.validate()
}

func (p PeerConfig) validate() error {
	switch {
	case p.PublicKey == (wgtypes.Key{}):
		return errors.New("peer's public key: missing")
	case p.KeepAlive < 0 || p.KeepAlive > maxInterval || p.KeepAlive%time.Second != 0:
		return fmt.Errorf("keepalive %v: want whole seconds up to %v", p.KeepAlive, maxInterval)
	}
	for _, prefix := range p.AllowedIPs {
		if !prefix.Addr().Is4() || prefix.Bits() == 0 || prefix != prefix.Masked() {
			return fmt.Errorf("allowed range %v: want an exact IPv4 prefix", prefix)
		}
	}
	return nil
}

// Stats is the state of the device and its peer.
type Stats struct {
	LastHandshake time.Time      // zero: none since Open, the last Renew or the last change of endpoint
	RxBytes       int64          // since Open, or since the kernel's device was created
	TxBytes       int64          // likewise
	Endpoint      netip.AddrPort // last source of the peer's packets, or configured; zero: unknown
	ListenPort    uint16
	// Changed means that another program changed keys, port or peer; Apply restores them. The kernel does not announce
	// such changes, but reading the device, as Stats does anyway, has a constant cost.
	Changed bool
}
