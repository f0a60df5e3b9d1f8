package netops

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"liqonet.io/liqonet/netops/nft"
)

// Kernel is the network configuration of one network namespace. It needs CAP_NET_ADMIN there and nothing else.
// It is for one goroutine at a time; a Watch goes on by itself.
type Kernel struct {
	netns   int // file descriptor of the namespace, -1: the one of the process
	route   *routeSocket
	nft     *nft.Conn
	watched atomic.Bool
	changes atomic.Uint64                  // that a Watch was notified of
	asked   atomic.Pointer[[]netip.Prefix] // ranges of peers that Detours was asked for last
}

// current stands for the namespace in which the calling thread is.
const current = -1

// Open returns the network namespace of the calling thread.
func Open() (*Kernel, error) { return OpenAt(current) }

// OpenAt returns the network namespace of a file descriptor, which must stay open for as long as the Kernel is
// used. To enter another namespace takes CAP_SYS_ADMIN.
func OpenAt(netnsFD int) (*Kernel, error) {
	route, err := dialRoute(netnsFD)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	tables, err := nft.Open(netnsFD)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open network namespace: %w", err), route.conn.Close())
	}
	return &Kernel{netns: netnsFD, route: route, nft: tables}, nil
}

// Close ends the connections to the kernel. What is configured stays.
func (k *Kernel) Close() error { return errors.Join(k.route.conn.Close(), k.nft.Close()) }

// open returns a handle of the netlink library for one family of messages.
func (k *Kernel) open(family int) (*netlink.Handle, error) {
	return netlink.NewHandleAt(netns.NsHandle(k.netns), family)
}

// Cleanup removes all that is ours from the namespace, BootTable too. Devices made elsewhere stay.
func (k *Kernel) Cleanup() error {
	have, err := k.Observe()
	if err != nil {
		return err
	}
	return errors.Join(k.Apply(Diff(have, State{})), k.LiftBootGuard())
}

// dial opens a netlink socket in a namespace, see Kernel.netns.
func dial(family, netnsFD int, config raw.Config) (*raw.Conn, error) {
	if netnsFD != current {
		config.NetNS = netnsFD
	}
	return raw.Dial(family, &config)
}
