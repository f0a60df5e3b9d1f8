package websocket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	mostSegments = 64             // of one write: UDP_MAX_SEGMENTS of linux/udp.h, which later kernels have raised
	mostPayload  = 1<<16 - 1 - 28 // 28 = IPv4 20 + UDP 8
	socketBuffer = 7 << 20        // bytes, each way, as in wireguard-go: the kernel's own 208 KiB drop a burst
	loopback     = 1              // LOOPBACK_IFINDEX of linux/netdevice.h
	destination  = 8              // offset of ipi_addr in struct in_pktinfo of linux/in.h
)

// socket exchanges datagrams of one tunnel with WireGuard in the same network namespace. Datagrams of one size are
// read and written together, in one system call (UDP_GRO, UDP_SEGMENT). One goroutine may read and another one write.
type socket struct {
	conn    *net.UDPConn
	client  bool
	control [128]byte            // of the datagrams being read
	flow    atomic.Pointer[flow] // of the client's last datagram; nil: none yet
}

// flow has the addresses of datagrams that a client's WireGuard sends.
type flow struct {
	wireguard netip.AddrPort
	endpoint  netip.Addr
	source    []byte // control message that makes the endpoint the source of a datagram
}

// newClientSocket opens the socket that receives the datagrams of a carried tunnel, by the route of table
// netops.Carried. They still have the endpoint as destination; port is the endpoint's. It requires CAP_NET_ADMIN. The
// error is EADDRINUSE if WireGuard itself listens on this port, until it has another one.
func newClientSocket(port uint16) (*socket, error) {
	config := net.ListenConfig{Control: withOptions(option{unix.SOL_IP, unix.IP_TRANSPARENT, 1}, option{unix.SOL_IP, unix.IP_PKTINFO, 1})}
	conn, err := config.ListenPacket(context.Background(), "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, fmt.Errorf("open socket for carried datagrams: %w", err)
	}
	return &socket{conn: conn.(*net.UDPConn), client: true}, nil
}

// newServerSocket opens a socket to the port on which WireGuard listens, by the loopback link. WireGuard replies to it
// while the peer's last authenticated packet came from here.
func newServerSocket(listenPort uint16) (*socket, error) {
	local := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)), Control: withOptions()}
	conn, err := dialer.DialContext(context.Background(), "udp4", netip.AddrPortFrom(local, listenPort).String())
	if err != nil {
		return nil, fmt.Errorf("open socket for carried datagrams: %w", err)
	}
	return &socket{conn: conn.(*net.UDPConn)}, nil
}

// option is a socket option.
type option struct{ level, name, value int }

// withOptions returns a function that sets options of a new socket, and those that all sockets have.
func withOptions(options ...option) func(network, address string, c syscall.RawConn) error {
	options = append(options, option{unix.SOL_UDP, unix.UDP_GRO, 1},
		option{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer}, option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer})
	return func(_, _ string, c syscall.RawConn) error {
		var errs []error
		err := c.Control(func(fd uintptr) {
			for _, o := range options {
				if err := unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
					errs = append(errs, fmt.Errorf("set option %d of level %d: %w", o.name, o.level, err))
				}
			}
		})
		return errors.Join(append(errs, err)...)
	}
}

// read waits for datagrams and returns the number of bytes, and the size of each datagram; the last one may be shorter.
// b must have 64 KiB.
func (s *socket) read(b []byte) (n, size int, err error) {
	for {
		n, control, _, from, err := s.conn.ReadMsgUDPAddrPort(b, s.control[:])
		switch {
		case errors.Is(err, unix.ECONNREFUSED): // WireGuard did not listen when the last datagram was written
			continue
		case err != nil:
			return 0, 0, err
		}
		size, to, link := parseControl(s.control[:control])
		if s.client && link != loopback || n == 0 {
			continue // a packet of another host, not by the route of table netops.Carried
		}
		if s.client {
			s.remember(from, to)
		}
		if size == 0 {
			size = n
		}
		return n, size, nil
	}
}

// parseControl returns the size of joined datagrams, 0 for a single one, and their destination and incoming link.
func parseControl(control []byte) (size int, to netip.Addr, link uint32) {
	for len(control) >= unix.SizeofCmsghdr {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return size, to, link
		}
		control = rest
		switch {
		case header.Level == unix.SOL_UDP && header.Type == unix.UDP_GRO && len(data) >= 4:
			size = int(binary.NativeEndian.Uint32(data))
		case header.Level == unix.SOL_IP && header.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			link, to = binary.NativeEndian.Uint32(data), netip.AddrFrom4([4]byte(data[destination:]))
		}
	}
	return size, to, link
}

// remember stores the addresses of a datagram for write.
func (s *socket) remember(from netip.AddrPort, to netip.Addr) {
	if last := s.flow.Load(); last != nil && last.wireguard == from && last.endpoint == to {
		return
	}
	s.flow.Store(&flow{from, to, unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.As4()})})
}

// write sends datagrams of one size, of which the last one may be shorter, to WireGuard: a client's with the endpoint
// of its last datagram as source, so that WireGuard keeps this endpoint. Before that datagram they are dropped, as are
// those that the kernel rejects. The only error is net.ErrClosed.
func (s *socket) write(b []byte, size int) error {
	var to netip.AddrPort
	var source []byte
	if s.client {
		last := s.flow.Load()
		if last == nil {
			return nil
		}
		to, source = last.wireguard, last.source
	}
	if size <= 0 {
		return nil
	}
	most := size * max(1, min(mostSegments, mostPayload/size))
	for len(b) > 0 {
		run := b[:min(len(b), most)]
		b = b[len(run):]
		control := source
		if len(run) > size {
			control = append(source[:len(source):len(source)], segmentation(size)...)
		}
		if _, _, err := s.conn.WriteMsgUDPAddrPort(run, control, to); errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}

// segmentation returns the control message by which the kernel splits a write into datagrams of a size.
func segmentation(size int) []byte {
	const length = 2
	header := unix.Cmsghdr{Level: unix.SOL_UDP, Type: unix.UDP_SEGMENT}
	header.SetLen(unix.CmsgLen(length))
	control := make([]byte, unix.CmsgSpace(length))
	_, _ = binary.Encode(control, binary.NativeEndian, header) // it has room
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
	return control
}

// local returns the address to which WireGuard of a server replies.
func (s *socket) local() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close closes the socket, and ends a read that waits.
func (s *socket) Close() error { return s.conn.Close() }
