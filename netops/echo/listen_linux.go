package echo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen opens a socket in the network namespace of the calling thread. Its packets are never fragmented, and are sent
// regardless of the path MTU that the kernel has cached, so that the path itself is measured.
func Listen(cfg Config) (*Socket, error) {
	if !cfg.Local.Addr().Is4() || cfg.Local.Addr().IsUnspecified() {
		return nil, fmt.Errorf("listen for echoes on %v: want one IPv4 address", cfg.Local)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		control := raw.Control(func(fd uintptr) {
			// PROBE sets "don't fragment" and does not use the kernel's path MTU cache (ip(7)).
			err = os.NewSyscallError("set don't fragment", unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE))
		})
		return errors.Join(control, err)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", cfg.Local.String())
	if err != nil {
		return nil, fmt.Errorf("listen for echoes on %v: %w", cfg.Local, err)
	}
	udp := conn.(*net.UDPConn)
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for echoes on %v: %w", cfg.Local, err), udp.Close())
	}
	return newSocket(&udpConn{UDPConn: udp, raw: raw, local: cfg.Local.Addr().As4()}, cfg.Responder), nil
}

// udpConn implements packetConn.
type udpConn struct {
	*net.UDPConn
	raw   syscall.RawConn
	local [4]byte
}

// WriteTo implements packetConn. net.UDPConn would block until the buffer has room, and with it all other probers, for
// the seconds in which a neighbour is not resolved.
func (c *udpConn) WriteTo(b []byte, to netip.AddrPort, route Route) error {
	var err error
	control := c.raw.Write(func(fd uintptr) bool {
		target := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
		_, err = unix.SendmsgN(int(fd), b, route.control(c.local), target, unix.MSG_DONTWAIT)
		return true
	})
	return errors.Join(control, err)
}

// control returns the route as control messages of a packet with a source address. A socket bound to the link would not
// receive packets from other links.
func (r Route) control(from [4]byte) []byte {
	if r == (Route{}) {
		return nil
	}
	header := unix.Cmsghdr{Level: unix.SOL_SOCKET, Type: unix.SO_MARK}
	header.SetLen(unix.CmsgLen(4))
	b := unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(r.Link), Spec_dst: from})
	mark, err := binary.Append(nil, binary.NativeEndian, header)
	if err != nil {
		panic(err) // unreachable: a type of fixed size
	}
	mark = binary.NativeEndian.AppendUint32(mark, r.Mark)
	return append(b, append(mark, make([]byte, unix.CmsgSpace(4)-len(mark))...)...)
}
