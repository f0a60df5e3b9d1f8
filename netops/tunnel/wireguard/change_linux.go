package wireguard

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// probeLink is the name of a temporary link.
const probeLink = "lqn-probe"

// change replaces the device by one of another implementation if cfg requires it, and reports whether it did. If that
// cannot be created, the device is unchanged. The session ends. The counters and the peer's endpoint are kept: a server
// could not reach its client without it. A change of the configuration to Auto replaces Userspace if the kernel has
// WireGuard.
func (d *Device) change(cfg Config) (bool, error) {
	to, auto := cfg.Implementation, cfg.Implementation != Kernel && cfg.Implementation != Userspace
	if auto {
		to = Kernel
	}
	if to == d.implementation || auto && cfg.Implementation == d.cfg.Implementation {
		return false, nil
	}
	if err := d.available(to); err != nil {
		if auto && errors.Is(err, unix.EOPNOTSUPP) {
			return false, nil
		}
		return false, fmt.Errorf("change from WireGuard in %s to %s: %w", d.implementation, to, err)
	}
	have, _ := d.read() // without a result there is no endpoint to keep
	d.log.Info("another implementation of WireGuard takes over", "from", d.implementation, "to", to)
	if err := d.engine.close(); err != nil {
		d.log.Warn("close of the device before", "error", err)
	}
	if err := d.openEngine(cfg); err != nil {
		return true, err
	}
	d.retire(have)
	peer, _ := findPeer(have, cfg.PublicKey)
	fresh, _ := difference(wgtypes.Device{}, cfg, endpointOf(peer))
	return true, doing("configure", d.engine.configure(fresh))
}

// available returns the reason for which a device of an implementation cannot be created, or nil.
func (d *Device) available(i string) error {
	if i == Userspace {
		fd, err := openClone()
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = probeLink
	link := &netlink.Wireguard{LinkAttrs: attrs}
	if err := d.links.LinkAdd(link); err != nil && !errors.Is(err, unix.EEXIST) { // left by an earlier process
		return fmt.Errorf("create WireGuard link %s: %w", probeLink, err)
	}
	if err := d.links.LinkDel(link); err != nil {
		return fmt.Errorf("delete link %s: %w", probeLink, err)
	}
	return nil
}
