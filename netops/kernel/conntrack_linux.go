package kernel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// FlushConntrack deletes the connections that have an address in one of the ranges, before or after translation. nat
// chains see only the first packet of a connection, so existing connections keep their old translation. The kernel
// cannot select connections by range. The table, which can have a million entries, is read as a stream.
func (k *Kernel) FlushConntrack(ranges []netip.Prefix) error {
	if len(ranges) == 0 {
		return nil
	}
	if err := k.deleteConnections(func(c connection) bool { return c.touches(ranges) }); err != nil {
		return fmt.Errorf("flush conntrack entries of %v: %w", ranges, err)
	}
	return nil
}

// Sources are the sources with which packets of a node leave for peers: those of its pods keep their address, all
// others have the node's.
type Sources struct {
	Peers, Pods []netip.Prefix
	Node        netip.Addr
}

// FlushWrongSources deletes the connections to peers with another source that were not answered yet. They began while
// the rules for sources were missing: the network plugin translated them to an address that the gateway drops, and
// their retransmissions too. It can also be an address that the gateway accepts: connections that were answered
// continue.
func (k *Kernel) FlushWrongSources(s Sources) error {
	if err := k.deleteConnections(s.wrong); err != nil {
		return fmt.Errorf("flush conntrack entries with wrong sources: %w", err)
	}
	return nil
}

func (s Sources) wrong(c connection) bool {
	want := s.Node
	if cidr.Contains(s.Pods, c.src) {
		want = c.src
	}
	return !c.answered && cidr.Contains(s.Peers, c.replySrc) && c.replyDst != want
}

// deleteConnections deletes the connections that match.
func (k *Kernel) deleteConnections(match func(connection) bool) error {
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
	return consistently(func() error { return flushConntrack(table, changes, match) })
}

// conntrackRequest returns a ctnetlink request for IPv4 (linux/netfilter/nfnetlink_conntrack.h).
func conntrackRequest(kind uint16, flags raw.HeaderFlags, attributes []byte) raw.Message {
	return raw.Message{
		Header: raw.Header{Type: raw.HeaderType(unix.NFNL_SUBSYS_CTNETLINK<<8 | kind), Flags: raw.Request | flags},
		Data:   append([]byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}, attributes...),
	}
}

// flushConntrack deletes matching entries while it reads the table. An entry that no longer exists is not an error.
func flushConntrack(table, changes *raw.Conn, match func(connection) bool) error {
	const get, remove = 1, 2 // IPCTNL_MSG_CT_GET, IPCTNL_MSG_CT_DELETE
	if _, err := table.Send(conntrackRequest(get, raw.Dump, nil)); err != nil {
		return cause(err)
	}
	if err := enlargeDump(table); err != nil {
		return err
	}
	var errs []error
	for m, err := range table.ReceiveIter() {
		if err != nil {
			return cause(err)
		}
		if len(errs) == maxReported || !match(connectionOf(m.Data)) {
			continue
		}
		request := conntrackRequest(remove, raw.Acknowledge, m.Data[nfgenmsgLen:])
		if _, err := changes.Execute(request); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, cause(err))
		}
	}
	return errors.Join(errs...)
}

// enlargeDump makes the kernel send a dump that has begun in messages of 32 KiB. The kernel uses the size of the
// largest buffer that the socket has received with, up to that limit (netlink_recvmsg in net/netlink/af_netlink.c). A
// million entries in messages of 4 KiB take 1.5 times as long.
func enlargeDump(c *raw.Conn) error {
	fd, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var buf [32 << 10]byte
	var failed error
	err = fd.Read(func(fd uintptr) bool {
		_, _, failed = unix.Recvfrom(int(fd), buf[:], unix.MSG_PEEK)
		return !errors.Is(failed, unix.EAGAIN)
	})
	return cmp.Or(err, failed)
}

const nfgenmsgLen = 4 // bytes: family, version, resource

// connection has the addresses of a conntrack entry: those of its first packet, and of the reply to it as it arrives,
// which are the destination and the source after translation. The zero value of an address: there is none.
type connection struct {
	src, dst, replySrc, replyDst netip.Addr
	answered                     bool
}

// touches reports whether an address is in one of the ranges.
func (c connection) touches(ranges []netip.Prefix) bool {
	return cidr.Contains(ranges, c.src) || cidr.Contains(ranges, c.dst) || cidr.Contains(ranges, c.replySrc) || cidr.Contains(ranges, c.replyDst)
}

// connectionOf decodes an entry.
func connectionOf(entry []byte) (c connection) {
	const original, reply, ip = 1, 2, 1 // CTA_TUPLE_ORIG, CTA_TUPLE_REPLY, CTA_TUPLE_IP
	const src, dst = 1, 2               // CTA_IP_V4_SRC, CTA_IP_V4_DST
	const status, seenReply = 3, 1 << 1 // CTA_STATUS, IPS_SEEN_REPLY
	for way, tuple := range attributes(entry[min(nfgenmsgLen, len(entry)):]) {
		if way == status && len(tuple) >= 4 {
			c.answered = binary.BigEndian.Uint32(tuple)&seenReply != 0
		}
		for part, addresses := range attributes(tuple) {
			if part != ip || way != original && way != reply {
				continue
			}
			for which, address := range attributes(addresses) {
				a, _ := netip.AddrFromSlice(address)
				switch {
				case way == original && which == src:
					c.src = a
				case way == original && which == dst:
					c.dst = a
				case which == src:
					c.replySrc = a
				case which == dst:
					c.replyDst = a
				}
			}
		}
	}
	return c
}

// attributes iterates over the types and values of attributes (linux/netlink.h), and stops at one that is longer than
// b. The library's decoder allocates, which was a quarter of the time for a million entries.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			n := int(binary.NativeEndian.Uint16(b))
			if n < unix.SizeofNlAttr || n > len(b) || !yield(binary.NativeEndian.Uint16(b[2:])&^unix.NLA_F_NESTED, b[unix.SizeofNlAttr:n]) {
				return
			}
			b = b[min(len(b), (n+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
		}
	}
}
