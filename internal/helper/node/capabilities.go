//go:build linux

package node

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/kernel"
)

// capabilities returns the features of this node's kernel.
func capabilities() (records.Capabilities, error) {
	var c records.Capabilities
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return c, fmt.Errorf("uname: %w", err)
	}
	c.Release = unix.ByteSliceToString(u.Release[:])
	var errs [3]error
	c.WireGuard, errs[0] = kernel.Supports("wireguard")
	c.Geneve, errs[1] = kernel.Supports("geneve")
	c.VXLAN, errs[2] = kernel.Supports("vxlan")
	return c, errors.Join(errs[:]...)
}
