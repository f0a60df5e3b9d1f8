// Package tunnel is the WireGuard device of a gateway: one link, one peer. The kernel's WireGuard carries the
// packets where there is one, else wireguard-go in this process; both are configured and read the same way.
//
// In scope: that the link exists, keys, the peer, its endpoints. The link's address and MTU, and that it is up, belong
// to package netops, as do routes, filters and forwarding. The package knows nothing of peerings. Devices exist on
// Linux only.
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

// Implementation is that of WireGuard; the zero value is Auto.
type Implementation = wireguard.Implementation

// The implementations. Auto is the kernel's where there is one.
const (
	Auto      = wireguard.Auto
	Kernel    = wireguard.Kernel
	Userspace = wireguard.Userspace
)

// Config is the wanted state of the device. It can be printed and logged: its secrets show as such only.
type Config struct {
	Implementation Implementation
	Name           string // of the link; 15 bytes at most
	PrivateKey     Secret
	PresharedKey   Secret // the zero value: none
	// ListenPort is the UDP port on which the device listens. Zero, allowed with endpoints only, lets the
	// kernel choose one, and another one at each Renew: a stale translation on the way is left behind so.
	ListenPort uint16
	MTU        int // bytes, of the packets inside the tunnel
	Peer       PeerConfig
	// Closed has the device know no peer: it sends nothing and takes nothing.
	Closed bool
}

// PeerConfig is the wanted state of the other end.
type PeerConfig struct {
	PublicKey wgtypes.Key
	// AllowedIPs are the ranges that the peer may send from and is sent to; IPv4, never all addresses.
	AllowedIPs []netip.Prefix
	// Endpoints are host:port, names or addresses, tried in turn. Empty: wait until the peer is heard, and
	// answer wherever it was heard last.
	Endpoints []string
	// KeepAlive is the interval of keepalives in whole seconds; zero: none.
	KeepAlive time.Duration
}

const (
	maxLinkName = 15  // IFNAMSIZ - 1
	minMTU      = 576 // RFC 791: what every IPv4 host accepts
	maxMTU      = 65535 - 32 - 28
	maxInterval = 65535 * time.Second // 16 bits on the wire of wgctrl
)

// Equal reports whether both ask for the same device.
func (c Config) Equal(o Config) bool {
	if !c.PrivateKey.Equal(o.PrivateKey) || !c.PresharedKey.Equal(o.PresharedKey) {
		return false
	}
	for _, each := range []*Config{&c, &o} { // the functions in which secrets are hidden are never equal
		each.PrivateKey, each.PresharedKey = Secret{}, Secret{}
	}
	return reflect.DeepEqual(c, o)
}

// validate names the first value that no device can have.
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

// Stats is what the device reports of its peer.
type Stats struct {
	LastHandshake time.Time      // zero: none since Open, the last Renew or the last change of endpoint
	RxBytes       int64          // since Open, or since the kernel's device was made
	TxBytes       int64          // likewise
	Endpoint      netip.AddrPort // where the peer was heard last, or is looked for; zero: unknown
	ListenPort    uint16
	// Changed says that other hands changed keys, port or peer: Apply brings them back. The kernel tells nobody
	// of such a change, but reading the device, as Stats does anyway, costs the same however much it routes.
	Changed bool
}
