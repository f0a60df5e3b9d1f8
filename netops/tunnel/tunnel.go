// Package tunnel is the contract between gateways and the drivers of their tunnels. A tunnel is one link that carries
// packets to one gateway of the peer. Drivers are subpackages; only they, and the code that makes keys, know their
// protocol.
//
// In scope for a driver: the link's existence, the session, the remote end and its endpoints. The link's address, MTU
// and up state are in package netops, as are routes, filters and forwarding. Drivers do not depend on peerings.
package tunnel

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Driver opens the tunnels of one gateway, whose secrets it has.
type Driver interface {
	// Derive returns a key that only the two ends of the tunnels can derive; another one for each label.
	Derive(label string) [32]byte
	// Decode decodes the driver's member of a record, which describes the remote end, for Config.Peer.
	Decode(member any) (peer any, err error)
	// Open brings a tunnel to the state of c: it adopts what an earlier process left in the kernel, and changes only
	// what differs. All objects are created on the calling thread, in its network namespace. Names of endpoints are
	// resolved in the background: when that ends, it calls found, and Apply uses the result or starts again.
	Open(c Config, log *slog.Logger, found func()) (Tunnel, error)
}

// Tunnel is an open tunnel. Its methods may be called from any goroutine; only Renew waits for the network.
type Tunnel interface {
	// Apply brings the tunnel to the state of c and reports whether anything changed. It continues after a failed step,
	// and restores what other programs changed or deleted. The name of an open tunnel cannot change. During the first
	// resolution of names the error is ErrSearching.
	Apply(c Config) (changed bool, err error)
	// Stats reads the state of the tunnel. Its implementation is also set if that fails.
	Stats() (Stats, error)
	// Renew ends the session and begins another one, at the next endpoint. Addresses in others are tried in turn with
	// those of the configuration, at the same port; those in taken belong to other tunnels and come last, so that the
	// tunnels do not all depend on one node. If ctx ends before names are resolved, the session is unchanged.
	Renew(ctx context.Context, others, taken []netip.Addr) error
	// RenewAt renews the tunnel with a known endpoint.
	RenewAt(endpoint netip.AddrPort) error
	// MoveTo sends packets to the peer at another endpoint, until a packet arrives from a different one. The session is
	// kept, and no packet is lost if the peer is reachable there.
	MoveTo(endpoint netip.AddrPort) error
	// Close ends the parts that depend on this process; with remove, it deletes the link as well.
	Close(remove bool) error
}

// Config is the desired state of a tunnel.
type Config struct {
	Name           string // of the link; 15 bytes at most
	Implementation string // one of the driver's; "": the driver selects it
	// ListenPort is the UDP port on which the tunnel listens. Zero, allowed with endpoints only, lets the kernel choose
	// a port, and another one at each Renew, so that stale NAT entries on the path are no longer used.
	ListenPort uint16
	MTU        int // bytes, of the packets inside the tunnel
	// AllowedIPs are the ranges of the peer's source and destination addresses; IPv4, never all addresses.
	AllowedIPs []netip.Prefix
	// Endpoints are host:port, names or addresses, tried in turn. Empty: wait for packets of the peer, and reply to its
	// last address.
	Endpoints []string
	// KeepAlive is the interval of keepalives in whole seconds; zero: none.
	KeepAlive time.Duration
	// Mark is that of the tunnel's packets outside, for policy rules; zero: none. A change keeps session and endpoint.
	Mark uint32
	// MAC and PeerMAC are the addresses of the link and of the remote end's, for a driver whose links have them.
	MAC, PeerMAC net.HardwareAddr
	// Group is that of the link from its creation on, for a driver that replaces links while packets arrive: the packet
	// filter would take those of a link without it for packets outside the tunnel.
	Group uint32
	// Private excludes public addresses as remote end, for a driver without encryption.
	Private bool
	// Closed removes the remote end from the tunnel: it neither sends nor accepts packets.
	Closed bool
	// Peer is what the driver must know of the remote end, as decoded by it.
	Peer any
}

// Stats is the state of a tunnel.
type Stats struct {
	Implementation string
	Session        Session
	RxBytes        int64          // since Open, or since the kernel's device was created
	TxBytes        int64          // likewise
	Endpoint       netip.AddrPort // last source of the peer's packets, or configured; zero: unknown
	Mark           uint32         // of the tunnel's packets outside; 0: none
	// Changed means that another program changed the tunnel; Apply restores it. The kernel does not announce such
	// changes, but reading the tunnel, as Stats does anyway, has a constant cost.
	Changed bool
}

// Session is what makes a tunnel able to carry packets. Only its driver knows how long one lasts.
type Session struct {
	Since  time.Time // end of its last handshake; zero: none since Open, the last Renew or the last change of endpoint
	Usable bool      // the other end accepts packets of this session
}

// ErrSearching means that the names of the peer's endpoints are being resolved. Meanwhile the peer has no endpoint, or
// its previous one.
var ErrSearching = errors.New("the names of the endpoints are being looked up")
