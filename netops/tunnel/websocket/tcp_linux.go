//go:build linux

package websocket

import (
	"errors"
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

// forTunnels sets the options of a socket for tunnels. A kernel without BBR uses its default.
func forTunnels(_, _ string, c syscall.RawConn) error {
	var errs error
	err := c.Control(func(fd uintptr) {
		errs = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSent),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds())),
		)
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestionControl)
	})
	return errors.Join(err, errs)
}
