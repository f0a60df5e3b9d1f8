package tunnel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	kernelKind    = "wireguard"
	userspaceKind = "tuntap"
)

// links speaks rtnetlink in the network namespace of the thread that made it.
type links struct{ handle *netlink.Handle }

func newLinks() (*links, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	return &links{handle: handle}, nil
}

func (l *links) close() { l.handle.Close() }

// find returns the link of that name, or nil.
func (l *links) find(name string) (netlink.Link, error) {
	link, err := l.handle.LinkByName(name)
	if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read link %s: %w", name, err)
	}
	return link, nil
}

// createKernel makes a WireGuard link. The error is EOPNOTSUPP where the kernel has no WireGuard.
func (l *links) createKernel(name string, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	if err := l.handle.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("create WireGuard link %s: %w", name, err)
	}
	return nil
}

// remove deletes the link; one that is not there is no error.
func (l *links) remove(name string) error {
	link, err := l.find(name)
	if err != nil || link == nil {
		return err
	}
	if err := l.handle.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete link %s: %w", name, err)
	}
	return nil
}
