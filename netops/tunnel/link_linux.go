package tunnel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
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

// configure gives the link its MTU and its one IPv4 address and sets it up, and reports whether any of that was
// missing.
func (l *links) configure(name string, mtu int, address netip.Prefix) (changed bool, err error) {
	link, err := l.handle.LinkByName(name)
	if err != nil {
		return false, fmt.Errorf("read link %s: %w", name, err)
	}
	var errs []error
	step := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("set %s of link %s: %w", what, name, err))
			return
		}
		changed = true
	}
	if link.Attrs().MTU != mtu {
		step(fmt.Sprintf("MTU %d", mtu), l.handle.LinkSetMTU(link, mtu))
	}
	moved, err := l.setAddress(link, address)
	if moved || err != nil {
		step(fmt.Sprintf("address %v", address), err)
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		// No fe80:: address and no router solicitations in the tunnel. A kernel without IPv6 has neither.
		_ = l.handle.LinkSetIP6AddrGenMode(link, nl.IN6_ADDR_GEN_MODE_NONE)
		step("up", l.handle.LinkSetUp(link))
	}
	return changed, errors.Join(errs...)
}

// setAddress makes address the only IPv4 address of the link. Others go first: one of the same range would be
// the primary address, and its end the end of the new one (net/ipv4/devinet.c, promote_secondaries).
func (l *links) setAddress(link netlink.Link, address netip.Prefix) (changed bool, err error) {
	have, err := l.handle.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return false, err
	}
	present := false
	for _, a := range have {
		if prefixOf(*a.IPNet) == address {
			present = true
			continue
		}
		if err := l.handle.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return changed, err
		}
		changed = true
	}
	if present {
		return changed, nil
	}
	return true, l.handle.AddrAdd(link, &netlink.Addr{IPNet: &ipNets([]netip.Prefix{address})[0]})
}
