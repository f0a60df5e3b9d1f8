package wireguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/endpoints"
)

// Device is an open tunnel. Its methods may be called from any goroutine.
type Device struct {
	log   *slog.Logger
	links *netlink.Handle // of the network namespace in which the device was opened

	mu             sync.Mutex // guards the following fields
	cfg            Config
	implementation string // Kernel or Userspace
	engine         engine
	past           tunnel.Stats // bytes of replaced peers
	endpoints      endpoints.Chooser
	readded        bool // a renewal added a peer that another program had deleted; reported by the next Apply
}

// Open brings a device to the state of cfg, as tunnel.Driver has it: it adopts the kernel device of an earlier process,
// or creates a device.
func Open(cfg Config, log *slog.Logger, found func()) (*Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open tunnel %s: %w", cfg.Name, err)
	}
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open tunnel %s: open rtnetlink: %w", cfg.Name, err)
	}
	d := &Device{log: log.With("link", cfg.Name), links: links, cfg: cfg}
	d.endpoints = endpoints.Chooser{Log: d.log, Lookup: net.DefaultResolver.LookupNetIP, Found: found}
	if err := d.openEngine(cfg); err != nil {
		links.Close()
		return nil, fmt.Errorf("open tunnel %s: %w", cfg.Name, err)
	}
	changed, err := d.sync(cfg)
	if _, unresolved := errors.AsType[*endpoints.UnresolvedError](err); err != nil && !unresolved {
		return nil, errors.Join(fmt.Errorf("open tunnel %s: %w", cfg.Name, err), d.Close(false))
	}
	if err != nil {
		d.log.Warn("tunnel has no endpoint yet", "error", err)
	}
	d.log.Info("tunnel open", "implementation", d.implementation, "changed", changed)
	return d, nil
}

// Kinds of links.
const (
	kernelKind    = "wireguard"
	userspaceKind = "tuntap"
)

// openEngine opens or creates the link and its engine.
func (d *Device) openEngine(cfg Config) error {
	if cfg.Implementation != Userspace {
		err := d.openKernel(cfg)
		if cfg.Implementation == Kernel || !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
	}
	if err := d.clear(cfg.Name, userspaceKind); err != nil {
		return err
	}
	e, err := newUserspaceEngine(cfg.Name, cfg.MTU, d.log)
	if err != nil {
		return err
	}
	d.engine, d.implementation = e, Userspace
	return nil
}

// openKernel adopts the kernel's WireGuard link or creates one. The error is EOPNOTSUPP if the kernel has no WireGuard.
func (d *Device) openKernel(cfg Config) error {
	if err := d.clear(cfg.Name, kernelKind); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = cfg.Name, cfg.MTU
	if err := d.links.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("create WireGuard link %s: %w", cfg.Name, err)
	}
	client, err := wgctrl.New()
	if err != nil {
		return fmt.Errorf("open WireGuard netlink: %w", err)
	}
	d.engine, d.implementation = &kernelEngine{name: cfg.Name, client: client}, Kernel
	return nil
}

// clear deletes a link with our name that is not of that kind.
func (d *Device) clear(name, kind string) error {
	link, err := d.find(name)
	if err != nil || link == nil || link.Type() == kind {
		return err
	}
	d.log.Warn("delete link of another kind", "kind", link.Type(), "want", kind)
	if err := d.links.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete link %s: %w", name, err)
	}
	return nil
}

// find returns the link of that name, or nil.
func (d *Device) find(name string) (netlink.Link, error) {
	link, err := d.links.LinkByName(name)
	if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read link %s: %w", name, err)
	}
	return link, nil
}

// Apply brings the device to the state of cfg, as tunnel.Tunnel has it. With another implementation, the link is
// replaced.
func (d *Device) Apply(cfg Config) (changed bool, err error) {
	if err := cfg.validate(); err != nil {
		return false, fmt.Errorf("apply tunnel %s: %w", cfg.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cfg.Name != d.cfg.Name {
		return false, fmt.Errorf("apply tunnel %s: device is %s: open another one", cfg.Name, d.cfg.Name)
	}
	replaced, errChange := d.change(cfg)
	if errChange != nil {
		cfg.Implementation = d.cfg.Implementation // the other changes do not depend on it
	}
	restored, err := d.restore()
	if err == nil {
		changed, err = d.sync(cfg)
	}
	if err = errors.Join(errChange, err); err != nil {
		err = fmt.Errorf("apply tunnel %s: %w", cfg.Name, err)
	}
	readded := d.readded
	d.readded = false
	return replaced || restored || readded || changed, err
}

// restore recreates the device if its link was deleted.
func (d *Device) restore() (bool, error) {
	link, err := d.find(d.cfg.Name)
	if err != nil || link != nil {
		return false, err
	}
	d.log.Warn("link is gone: make it again")
	if err := d.engine.close(); err != nil {
		d.log.Warn("close of the device whose link is gone", "error", err)
	}
	return true, d.openEngine(d.cfg)
}

// sync implements Open and Apply; d.mu is held, or d not shared yet.
func (d *Device) sync(cfg Config) (changed bool, err error) {
	have, err := d.read()
	if err != nil {
		return false, err
	}
	endpoint, errResolve := d.chooseEndpoint(cfg, have)
	diff, differs := difference(have, cfg, endpoint)
	var errConfigure error
	if differs {
		errConfigure = doing("configure", d.engine.configure(diff))
	}
	if errConfigure == nil {
		if diff.ReplacePeers {
			d.retire(have)
		}
		d.cfg = cfg
		if endpoint.IsValid() {
			d.endpoints.Sought = endpoint
		}
	}
	errStart := doing("start", d.engine.start(cfg.MTU))
	return differs, errors.Join(errConfigure, errStart, errResolve)
}

// read returns the observed device.
func (d *Device) read() (wgtypes.Device, error) {
	have, err := d.engine.read()
	return have, doing("read", err)
}

// doing adds the operation to an error.
func doing(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s WireGuard device: %w", what, err)
	}
	return nil
}

// chooseEndpoint returns the endpoint to set for the peer, or the zero value to keep the current one.
func (d *Device) chooseEndpoint(cfg Config, have wgtypes.Device) (netip.AddrPort, error) {
	wanted := cfg.Endpoints
	if cfg.Closed {
		wanted = nil
	}
	peer, _ := findPeer(have, cfg.PublicKey)
	return d.endpoints.Choose(wanted, slices.Equal(wanted, d.cfg.Endpoints), endpointOf(peer))
}

// Renew removes the peer and adds it again, which restarts a tunnel that hangs: the next packet, or the immediate
// keepalive if there is one, starts a handshake without WireGuard's own delays (15 s and more). Names are resolved
// again and the next endpoint is tried; with a listen port of zero, from another port. If no name resolves, and without
// configured endpoints, the last endpoint is kept. Renew waits for name servers, for resolveTimeout at most.
func (d *Device) Renew(ctx context.Context, others, taken []netip.Addr) error {
	d.mu.Lock()
	wanted, find := d.cfg.Endpoints, d.endpoints.Lookup
	d.mu.Unlock()
	candidates, err := endpoints.Resolve(ctx, find, wanted)
	if err != nil {
		d.log.Warn("some endpoints do not resolve", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	have, err := d.read()
	if err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	peer, _ := findPeer(have, d.cfg.PublicKey)
	return d.renew(have, d.endpoints.Next(candidates, endpointOf(peer), others, taken))
}

// RenewAt renews the tunnel as Renew does, with a known endpoint of the peer.
func (d *Device) RenewAt(endpoint netip.AddrPort) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.read()
	if err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	return d.renew(have, endpoint)
}

// MoveTo is that of tunnel.Tunnel: WireGuard sends to the source of the last packet that it accepts.
func (d *Device) MoveTo(endpoint netip.AddrPort) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Closed {
		return nil
	}
	move := wgtypes.PeerConfig{PublicKey: d.cfg.PublicKey, UpdateOnly: true, Endpoint: net.UDPAddrFromAddrPort(endpoint)}
	if err := doing("configure", d.engine.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{move}})); err != nil {
		return fmt.Errorf("move tunnel %s: %w", d.cfg.Name, err)
	}
	return nil
}

// renew replaces the peer, with an endpoint; d.mu is held.
func (d *Device) renew(have wgtypes.Device, next netip.AddrPort) error {
	if d.cfg.Closed {
		return nil
	}
	_, found := findPeer(have, d.cfg.PublicKey)
	change := wgtypes.Config{ReplacePeers: true, Peers: []wgtypes.PeerConfig{newPeer(d.cfg, next)}}
	if d.cfg.ListenPort == 0 {
		change.ListenPort = new(int)
	}
	if err := doing("configure", d.engine.configure(change)); err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	d.retire(have)
	d.endpoints.Sought = next
	d.readded = d.readded || !found
	d.log.Info("tunnel renewed", "endpoint", next)
	return nil
}

// retire keeps the counters of a peer that has been replaced.
func (d *Device) retire(have wgtypes.Device) {
	peer, _ := findPeer(have, d.cfg.PublicKey)
	d.past.RxBytes += peer.ReceiveBytes
	d.past.TxBytes += peer.TransmitBytes
}

// rejectAfterTime is WireGuard's: packets with older keys are dropped.
const rejectAfterTime = 180 * time.Second

// Stats reads the state of the device and its peer. For a missing peer it returns zero values.
func (d *Device) Stats() (tunnel.Stats, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.read()
	if err != nil {
		return tunnel.Stats{Implementation: d.implementation}, fmt.Errorf("tunnel %s: %w", d.cfg.Name, err)
	}
	peer, _ := findPeer(have, d.cfg.PublicKey)
	stats := tunnel.Stats{
		Implementation: d.implementation,
		RxBytes:        d.past.RxBytes + peer.ReceiveBytes,
		TxBytes:        d.past.TxBytes + peer.TransmitBytes,
		Endpoint:       endpointOf(peer),
		Mark:           uint32(have.FirewallMark),
	}
	_, stats.Changed = difference(have, d.cfg, netip.AddrPort{})
	if peer.LastHandshakeTime.Unix() > 0 { // the kernel returns 1970 for never
		stats.Session = tunnel.Session{Since: peer.LastHandshakeTime, Usable: time.Since(peer.LastHandshakeTime) < rejectAfterTime}
	}
	return stats, nil
}

// Close closes the device. Without remove, a kernel device continues to run; a userspace device ends.
func (d *Device) Close(remove bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.links.Close()
	err := d.engine.close()
	if remove {
		err = errors.Join(err, d.clear(d.cfg.Name, "none"))
	}
	return err
}
