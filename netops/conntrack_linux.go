package netops

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// FlushConntrack forgets the connections that have an address in one of the ranges, before or after translation:
// nat chains see only a connection's first packet, so that old ones keep their old translation until then. The kernel
// cannot select them by range. The table, which can have a million entries, is read as a stream.
func (k *Kernel) FlushConntrack(ranges []netip.Prefix) error {
	if len(ranges) == 0 {
		return nil
	}
	table, err := dial(unix.NETLINK_NETFILTER, k.netns, raw.Config{})
	if err != nil {
		return fmt.Errorf("open connection tracking: %w", err)
	}
	defer func() { _ = table.Close() }()
	changes, err := dial(unix.NETLINK_NETFILTER, k.netns, raw.Config{})
	if err != nil {
		return fmt.Errorf("open connection tracking: %w", err)
	}
	defer func() { _ = changes.Close() }()
	if err := consistently(func() error { return flushConntrack(table, changes, ranges) }); err != nil {
		return fmt.Errorf("flush conntrack entries of %v: %w", ranges, err)
	}
	return nil
}

// conntrackRequest is a request of ctnetlink for IPv4 (linux/netfilter/nfnetlink_conntrack.h).
func conntrackRequest(kind uint16, flags raw.HeaderFlags, attributes []byte) raw.Message {
	return raw.Message{
		Header: raw.Header{Type: raw.HeaderType(unix.NFNL_SUBSYS_CTNETLINK<<8 | kind), Flags: raw.Request | flags},
		Data:   append([]byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}, attributes...),
	}
}

// flushConntrack deletes matching entries while it reads the table. One that has ended meanwhile is no failure.
func flushConntrack(table, changes *raw.Conn, ranges []netip.Prefix) error {
	const get, remove = 1, 2 // IPCTNL_MSG_CT_GET, IPCTNL_MSG_CT_DELETE
	if _, err := table.Send(conntrackRequest(get, raw.Dump, nil)); err != nil {
		return cause(err)
	}
	var errs []error
	for m, err := range table.ReceiveIter() {
		if err != nil {
			return cause(err)
		}
		switch match, err := connects(m.Data, ranges); {
		case err != nil:
			return fmt.Errorf("decode entry: %w", err)
		case match && len(errs) < maxReported:
			request := conntrackRequest(remove, raw.Acknowledge, m.Data[nfgenmsgLen:])
			if _, err := changes.Execute(request); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, cause(err))
			}
		}
	}
	return errors.Join(errs...)
}

const nfgenmsgLen = 4 // bytes: family, version, resource

// connects reports whether an entry has an address in one of the ranges, before or after translation.
func connects(entry []byte, ranges []netip.Prefix) (bool, error) {
	const original, reply, ip, source, destination = 1, 2, 1, 1, 2 // CTA_TUPLE_…, CTA_TUPLE_IP, CTA_IP_V4_…
	var header [nfgenmsgLen]byte
	var addresses [4]netip.Addr
	tuple := func(from, to *netip.Addr) []field {
		return []field{optional(ip, []field{optional(source, from), optional(destination, to)})}
	}
	err := unpack(entry, &header,
		optional(original, tuple(&addresses[0], &addresses[1])), optional(reply, tuple(&addresses[2], &addresses[3])))
	return slices.ContainsFunc(addresses[:], func(a netip.Addr) bool { return cidr.Contains(ranges, a) }), err
}
