package echo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen opens a socket in the network namespace of the calling thread. Its packets are never fragmented, and
// what the kernel believes of the path's MTU does not hold them back: the path itself is asked.
func Listen(cfg Config) (*Socket, error) {
	if !cfg.Local.Addr().Is4() || cfg.Local.Addr().IsUnspecified() {
		return nil, fmt.Errorf("listen for echoes on %v: want one IPv4 address", cfg.Local)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		control := raw.Control(func(fd uintptr) { err = setOptions(int(fd), cfg.Device) })
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

// setOptions prepares a socket before it is bound.
func setOptions(fd int, device string) error {
	// PROBE sets "don't fragment" and does not use the kernel's path MTU cache (ip(7)).
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE); err != nil {
		return fmt.Errorf("set don't fragment: %w", err)
	}
	if device == "" {
		return nil
	}
	// Without CAP_NET_RAW since Linux 5.7, for a socket that is bound to no device yet.
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to device %s: %w", device, err)
	}
	return nil
}

// udpConn is a packetConn.
type udpConn struct {
	*net.UDPConn
	raw   syscall.RawConn
	local [4]byte
}

// WriteTo implements packetConn. net.UDPConn would wait for room in the buffer, and with it all other probers,
// for the seconds in which a neighbour is not found.
func (c *udpConn) WriteTo(b []byte, to netip.AddrPort, way Way) error {
	var err error
	control := c.raw.Write(func(fd uintptr) bool {
		target := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
		_, err = unix.SendmsgN(int(fd), b, way.control(c.local), target, unix.MSG_DONTWAIT)
		return true
	})
	return errors.Join(control, err)
}

// control is the way as control messages of a packet from an address. A socket that is bound to the link would not
// receive what comes by others.
func (w Way) control(from [4]byte) []byte {
	if w == (Way{}) {
		return nil
	}
	header := unix.Cmsghdr{Level: unix.SOL_SOCKET, Type: unix.SO_MARK}
	header.SetLen(unix.CmsgLen(4))
	b := unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(w.Link), Spec_dst: from})
	mark, err := binary.Append(nil, binary.NativeEndian, header)
	if err != nil {
		panic(err) // a type of fixed size
	}
	mark = binary.NativeEndian.AppendUint32(mark, w.Mark)
	return append(b, append(mark, make([]byte, unix.CmsgSpace(4)-len(mark))...)...)
}
