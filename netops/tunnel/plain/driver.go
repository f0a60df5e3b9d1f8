// Package plain is the driver of tunnels without encryption: a VXLAN link (RFC 7348) with one remote end, for lines
// that are encrypted already. Devices exist on Linux only.
//
// VXLAN itself sends to a configured address from changing ports, which passes no NAT. A device here sends from the
// port on which it listens, so that a tunnel is one flow of UDP, and a server sends to where the client's packets came
// from. Who may send is decided by the packet filter (package netops); it records the senders that it accepts.
package plain

import (
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cidr"
)

// Implementation is the only one of this driver.
const Implementation = "plain"

// Sender is the source of packets that the packet filter accepted.
type Sender struct {
	From netip.AddrPort
	Idle time.Duration // since its last packet
}

// Driver opens the tunnels of one gateway.
type Driver struct {
	derive  func(label string) [32]byte
	senders func(listenPort uint16) ([]Sender, error)
}

// New returns a driver that derives keys as another one does, and reads the accepted senders to a listen port.
func New(derive func(label string) [32]byte, senders func(listenPort uint16) ([]Sender, error)) *Driver {
	return &Driver{derive: derive, senders: senders}
}

// VNI returns the identifier of all tunnels of a peering. It is derived from the preshared key, so that somebody who
// sends from an accepted address must guess 24 bits. It is sent in the clear.
func VNI(derive func(label string) [32]byte) uint32 {
	key := derive("plain")
	return max(uint32(key[0])<<16|uint32(key[1])<<8|uint32(key[2]), 1)
}

// Derive implements tunnel.Driver.
func (d *Driver) Derive(label string) [32]byte { return d.derive(label) }

// Decode implements tunnel.Driver: nothing of the remote end must be known.
func (d *Driver) Decode(any) (any, error) { return nil, nil }

// silence is the time without packets of the current sender after which a server sends to a later one.
const silence = 400 * time.Millisecond

// answerable returns the senders to which packets can be sent: an entry of a forwarding database with port 0 has the
// link's own port.
func answerable(senders []Sender, private bool) []Sender {
	return slices.DeleteFunc(senders, func(s Sender) bool { return s.From.Port() == 0 || private && cidr.Public(s.From.Addr()) })
}

// follow returns the address to which a server sends: the current one, unless it is silent and another one is not.
func follow(current netip.AddrPort, senders []Sender) netip.AddrPort {
	if len(senders) == 0 {
		return current
	}
	latest, idle := senders[0], time.Duration(-1)
	for _, s := range senders {
		if s.Idle < latest.Idle {
			latest = s
		}
		if s.From == current {
			idle = s.Idle
		}
	}
	if idle >= 0 && idle < latest.Idle+silence {
		return current
	}
	return latest.From
}
