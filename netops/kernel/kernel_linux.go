// Package kernel reads the state of the kernel of a network namespace, and applies plans to it, through netlink. The
// values are those of package netops.
package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// Kernel is the network configuration of one network namespace. It needs CAP_NET_ADMIN in that namespace, and no other
// capability. It must be used by one goroutine at a time; a Watch runs independently.
type Kernel struct {
	netns        int // file descriptor of the namespace, -1: that of the process
	route        *routeSocket
	nft          *nft.Conn
	watched      atomic.Bool
	changes      atomic.Uint64                  // reported to a Watch
	detourRanges atomic.Pointer[[]netip.Prefix] // ranges of peers in the last call of Detours
}

// current means the namespace of the calling thread.
const current = -1

// Open opens the network namespace of the calling thread.
func Open() (*Kernel, error) { return OpenAt(current) }

// OpenAt opens the network namespace of a file descriptor, which must stay open while the Kernel is used. Another
// namespace than the caller's requires CAP_SYS_ADMIN.
func OpenAt(netnsFD int) (*Kernel, error) {
	// Strict checking makes the kernel filter dumps. It came with Linux 4.20, nexthop objects with 5.3, so there is no
	// fallback.
	route, err := dial(unix.NETLINK_ROUTE, netnsFD, raw.Config{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	tables, err := nft.Open(netnsFD)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open network namespace: %w", err), route.Close())
	}
	return &Kernel{netns: netnsFD, route: &routeSocket{conn: route}, nft: tables}, nil
}

// Close closes the netlink sockets. The configuration remains.
func (k *Kernel) Close() error { return errors.Join(k.route.conn.Close(), k.nft.Close()) }

// open returns a handle of the netlink library for one family of messages.
func (k *Kernel) open(family int) (*netlink.Handle, error) {
	return netlink.NewHandleAt(netns.NsHandle(k.netns), family)
}

// Cleanup removes all our state from the namespace, BootTable included. Devices of other programs remain.
func (k *Kernel) Cleanup() error {
	have, err := k.Observe()
	if err != nil {
		return err
	}
	return errors.Join(k.Apply(netops.Diff(have, netops.State{})), k.LiftBootGuard())
}

// dial opens a netlink socket in a namespace; see Kernel.netns.
func dial(family, netnsFD int, config raw.Config) (*raw.Conn, error) {
	if netnsFD != current {
		config.NetNS = netnsFD
	}
	return raw.Dial(family, &config)
}
