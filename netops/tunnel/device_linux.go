package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// Device is an open tunnel. Its methods may be called from any goroutine.
type Device struct {
	log   *slog.Logger
	links *netlink.Handle // of the network namespace in which the device was opened
	names lookup
	found func()

	mu             sync.Mutex // guards what follows
	cfg            Config
	implementation Implementation
	engine         engine
	sought         netip.AddrPort // the endpoint that was set last; zero: none
	past           Stats          // bytes of the peers that were replaced
	search         *search        // for the endpoint that the configuration asks for; nil: none is needed
	readded        bool           // a renewal has added a peer that others had deleted, which the next Apply reports
}

// Open brings the tunnel into the state of cfg: it adopts the kernel device that an earlier process left,
// changing only what differs, or makes a device. Everything is created on the calling thread, thus in its
// network namespace. Names of endpoints are looked up in the background: each time that ends, it calls found, and Apply
// takes the result or tries again.
func Open(cfg Config, log *slog.Logger, found func()) (*Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open tunnel %s: %w", cfg.Name, err)
	}
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open tunnel %s: open rtnetlink: %w", cfg.Name, err)
	}
	d := &Device{log: log.With("link", cfg.Name), links: links, names: net.DefaultResolver.LookupNetIP, found: found, cfg: cfg}
	if err := d.openEngine(cfg); err != nil {
		links.Close()
		return nil, fmt.Errorf("open tunnel %s: %w", cfg.Name, err)
	}
	changed, err := d.bring(cfg)
	if _, unresolved := errors.AsType[*unresolvedError](err); err != nil && !unresolved {
		return nil, errors.Join(fmt.Errorf("open tunnel %s: %w", cfg.Name, err), d.Close())
	}
	if err != nil {
		d.log.Warn("tunnel has no endpoint yet", "error", err)
	}
	d.log.Info("tunnel open", "implementation", d.implementation, "changed", changed)
	return d, nil
}

// Implementation tells who carries the packets: Kernel or Userspace.
func (d *Device) Implementation() Implementation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.implementation
}

// Kinds of links.
const (
	kernelKind    = "wireguard"
	userspaceKind = "tuntap"
)

// openEngine finds or makes the link and what carries its packets.
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

// openKernel adopts the kernel's WireGuard link or makes one. The error is EOPNOTSUPP where the kernel has no
// WireGuard.
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

// clear deletes a link of our name that is not of that kind.
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

// Apply brings the device into the state of cfg and reports whether anything had to change. It goes on past a
// failed step. Link or peer that were deleted by other hands come back. With another implementation, the link is
// another one. The name of an open device does not change. It waits for no name server: while one is asked for the
// first time, the error is ErrSearching.
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
		cfg.Implementation = d.cfg.Implementation // the rest does not wait for it
	}
	revived, err := d.revive()
	if err == nil {
		changed, err = d.bring(cfg)
	}
	if err = errors.Join(errChange, err); err != nil {
		err = fmt.Errorf("apply tunnel %s: %w", cfg.Name, err)
	}
	readded := d.readded
	d.readded = false
	return replaced || revived || readded || changed, err
}

// revive makes the device again where its link has been deleted.
func (d *Device) revive() (bool, error) {
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

// bring does the work of Open and Apply; d.mu is held, or d not shared yet.
func (d *Device) bring(cfg Config) (changed bool, err error) {
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
			d.sought = endpoint
		}
	}
	errStart := doing("start", d.engine.start(cfg.MTU))
	return differs, errors.Join(errConfigure, errStart, errResolve)
}

// read returns the device as it is.
func (d *Device) read() (wgtypes.Device, error) {
	have, err := d.engine.read()
	return have, doing("read", err)
}

// doing names what was done to the device when an error came.
func doing(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s WireGuard device: %w", what, err)
	}
	return nil
}

// chooseEndpoint returns the endpoint that the peer must get, or the zero value where it may keep its own: one
// that the kernel learned from the peer's packets, or one that still is among the configured ones. While their names
// are looked for, it keeps its own, too.
func (d *Device) chooseEndpoint(cfg Config, have wgtypes.Device) (netip.AddrPort, error) {
	peer, known := findPeer(have, cfg.Peer.PublicKey)
	settled := known && peer.Endpoint != nil && slices.Equal(cfg.Peer.Endpoints, d.cfg.Peer.Endpoints) && d.search == nil
	if settled || len(cfg.Peer.Endpoints) == 0 || cfg.Closed {
		d.search = nil
		return netip.AddrPort{}, nil
	}
	switch sought := d.search; {
	case sought == nil || !slices.Equal(sought.endpoints, cfg.Peer.Endpoints):
		d.search = d.begin(cfg.Peer.Endpoints, nil)
	case sought.taken: // and had found nothing
		d.search = d.begin(cfg.Peer.Endpoints, sought.err)
	}
	candidates, err := d.search.result()
	if len(candidates) == 0 {
		return netip.AddrPort{}, &unresolvedError{err}
	}
	d.search = nil
	if err != nil {
		d.log.Warn("some endpoints do not resolve", "error", err)
	}
	if known && slices.Contains(candidates, endpointOf(peer)) {
		return netip.AddrPort{}, nil
	}
	return candidates[0], nil
}

// unresolvedError says that no endpoint of the peer has an address at the moment.
type unresolvedError struct{ cause error }

func (e *unresolvedError) Error() string { return e.cause.Error() }
func (e *unresolvedError) Unwrap() error { return e.cause }

// Renew removes the peer and adds it again, which ends a tunnel that hangs: the next packet, or the keepalive
// at once where there is one, starts a handshake without WireGuard's own waits (15 s and more). Names are
// resolved anew and the next endpoint is tried; with a listen port of zero, from another port. Others are addresses
// that are tried in turn with those of the configuration, at the same port. Taken are those of other tunnels, which
// come last: where all tunnels enter by one node, its loss is that of all. Where nothing resolves, and on the side
// without endpoints, the last one stays. It waits for name servers, for resolveTimeout at most. If ctx has ended then,
// the peer stays as it is.
func (d *Device) Renew(ctx context.Context, others, taken []netip.Addr) error {
	d.mu.Lock()
	endpoints := d.cfg.Peer.Endpoints
	d.mu.Unlock()
	candidates, err := resolve(ctx, d.names, endpoints)
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
	peer, _ := findPeer(have, d.cfg.Peer.PublicKey)
	heard := endpointOf(peer) // where the peer is looked for without candidates, too
	candidates = freeFirst(alternate(candidates, others), taken)
	from := heard // the next one follows where the peer was last, also if that is not where it was sought
	if !slices.Contains(candidates, heard) {
		from = cmp.Or(d.sought, heard)
	}
	return d.renew(have, cmp.Or(after(from, candidates), heard, d.sought))
}

// RenewAt renews the tunnel as Renew does, with an endpoint at which the peer was heard.
func (d *Device) RenewAt(endpoint netip.AddrPort) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.read()
	if err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	return d.renew(have, endpoint)
}

// MoveTo sends to the peer at another endpoint, until something comes from elsewhere. Its session stays, and nothing is
// lost where the peer is reached there.
func (d *Device) MoveTo(endpoint netip.AddrPort) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Closed {
		return nil
	}
	move := wgtypes.PeerConfig{PublicKey: d.cfg.Peer.PublicKey, UpdateOnly: true, Endpoint: net.UDPAddrFromAddrPort(endpoint)}
	if err := doing("configure", d.engine.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{move}})); err != nil {
		return fmt.Errorf("move tunnel %s: %w", d.cfg.Name, err)
	}
	return nil
}

// renew adds the peer anew, at an endpoint; d.mu is held.
func (d *Device) renew(have wgtypes.Device, next netip.AddrPort) error {
	if d.cfg.Closed {
		return nil
	}
	_, found := findPeer(have, d.cfg.Peer.PublicKey)
	change := wgtypes.Config{ReplacePeers: true, Peers: []wgtypes.PeerConfig{newPeer(d.cfg, next)}}
	if d.cfg.ListenPort == 0 {
		change.ListenPort = new(int)
	}
	if err := doing("configure", d.engine.configure(change)); err != nil {
		return fmt.Errorf("renew tunnel %s: %w", d.cfg.Name, err)
	}
	d.retire(have)
	d.sought = next
	d.readded = d.readded || !found
	d.log.Info("tunnel renewed", "endpoint", next)
	return nil
}

// retire keeps the counters of a peer that has been replaced.
func (d *Device) retire(have wgtypes.Device) {
	peer, _ := findPeer(have, d.cfg.Peer.PublicKey)
	d.past.RxBytes += peer.ReceiveBytes
	d.past.TxBytes += peer.TransmitBytes
}

// Stats reads what the device knows of its peer. A peer that is missing has zero values.
func (d *Device) Stats() (Stats, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.read()
	if err != nil {
		return Stats{}, fmt.Errorf("tunnel %s: %w", d.cfg.Name, err)
	}
	peer, _ := findPeer(have, d.cfg.Peer.PublicKey)
	stats := Stats{
		RxBytes:    d.past.RxBytes + peer.ReceiveBytes,
		TxBytes:    d.past.TxBytes + peer.TransmitBytes,
		Endpoint:   endpointOf(peer),
		ListenPort: uint16(have.ListenPort),
	}
	_, stats.Changed = difference(have, d.cfg, netip.AddrPort{})
	if peer.LastHandshakeTime.Unix() > 0 { // the kernel says 1970 for never
		stats.LastHandshake = peer.LastHandshakeTime
	}
	return stats, nil
}

// Close lets go of the device: a kernel device stays and carries on, a userspace device ends.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.links.Close()
	return d.engine.close()
}
