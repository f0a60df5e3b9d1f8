//go:build linux

package websocket

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// congestionControl keeps its rate under loss, where cubic, with WireGuard's packets inside, comes to a standstill.
	congestionControl = "bbr"
	// notSent is the number of bytes that the kernel takes beyond what is in flight: what waits in the kernel cannot be
	// dropped when it is too old. 16 KiB would starve BBR.
	notSent = 64 << 10
	// lostAfter is the time without acknowledgements after which the kernel ends a connection (RFC 5482).
	lostAfter = 5 * time.Second
)

// forTunnels sets the options of a socket for tunnels.
func forTunnels(_, _ string, c syscall.RawConn) error {
	var errs error
	err := c.Control(func(fd uintptr) {
		errs = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSent),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds())),
		)
	})
	return errors.Join(err, errs)
}

// selectCongestionControl returns the one that a connection has: the kernel's default, if it does not have BBR.
func selectCongestionControl(c net.Conn) (name string) {
	if proxied, ok := c.(*tls.Conn); ok {
		c = proxied.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return ""
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return ""
	}
	_ = raw.Control(func(fd uintptr) { // an error: it has been closed
		// The kernel loads the module, if it may.
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestionControl)
		name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return name
}
