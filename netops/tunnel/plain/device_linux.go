package plain

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

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/endpoints"
)

// device is an open tunnel. Its remote end is an entry of the link's forwarding database, so that another process
// continues with it.
type device struct {
	log    *slog.Logger
	driver *Driver
	links  *netlink.Handle // of the network namespace in which the device was opened
	socket *socket
	end    context.CancelFunc // of watch

	mu        sync.Mutex // guards the following fields
	cfg       tunnel.Config
	chosen    []string // endpoints among which the remote end was chosen
	endpoints endpoints.Chooser
	session   session
	past      counters // of replaced links
}

// session begins with the first packet after the remote end was set.
type session struct {
	before int64     // bytes received before it
	since  time.Time // zero: not yet
}

type counters struct{ rx, tx int64 }

// Open implements tunnel.Driver.
func (d *Driver) Open(c tunnel.Config, log *slog.Logger, found func()) (tunnel.Tunnel, error) {
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open tunnel %s: open rtnetlink: %w", c.Name, err)
	}
	conn, err := openSocket()
	if err != nil {
		links.Close()
		return nil, fmt.Errorf("open tunnel %s: open rtnetlink: %w", c.Name, err)
	}
	t := &device{log: log.With("link", c.Name), driver: d, links: links, socket: conn, cfg: c, chosen: withoutIPv6(c.Endpoints)}
	t.endpoints = endpoints.Chooser{Log: t.log, Lookup: lookup, Found: found}
	ctx, end := context.WithCancel(context.Background())
	t.end = end
	changed, err := t.Apply(c)
	if _, unresolved := errors.AsType[*endpoints.UnresolvedError](err); err != nil && !unresolved {
		return nil, errors.Join(err, t.Close(false))
	}
	t.log.Warn("tunnel without encryption open", "changed", changed)
	go t.watch(ctx)
	return t, nil
}

// lookup finds addresses of IPv4: the link sends to no others.
func lookup(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
}

// withoutIPv6 returns the endpoints to which the link can send: all but addresses of IPv6.
func withoutIPv6(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(endpoint string) bool {
		host, _, _ := net.SplitHostPort(endpoint)
		a, err := netip.ParseAddr(host)
		return err == nil && a.Unmap().Is6()
	})
}

// Apply implements tunnel.Tunnel.
func (t *device) Apply(c tunnel.Config) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := validate(c, t.cfg.Name); err != nil {
		return false, fmt.Errorf("apply tunnel %s: %w", c.Name, err)
	}
	c.Endpoints = withoutIPv6(c.Endpoints)
	t.cfg = c
	if changed, err = t.applyLink(); err == nil && !c.Closed {
		var moved bool
		moved, err = t.applyEndpoint()
		changed = changed || moved
	}
	if err != nil {
		err = fmt.Errorf("apply tunnel %s: %w", c.Name, err)
	}
	return changed, err
}

// validate rejects configurations that this driver cannot have.
func validate(c tunnel.Config, name string) error {
	switch {
	case c.Name != name:
		return fmt.Errorf("device is %s: open another one", name)
	case c.ListenPort == 0:
		return errors.New("listen port 0: the device sends from the port on which it listens")
	case len(c.MAC) == 0 || len(c.PeerMAC) == 0:
		return errors.New("MAC addresses: missing")
	case c.Mark != 0:
		return errors.New("mark: packets without encryption have no other transport")
	case len(c.Endpoints) > 0 && len(withoutIPv6(c.Endpoints)) == 0:
		return errors.New("endpoints: want one of IPv4")
	}
	return nil
}

// applyLink brings the link to the configuration; another one has the same remote end. A closed tunnel has none: then
// it accepts nothing.
func (t *device) applyLink() (changed bool, err error) {
	want := vxlan{name: t.cfg.Name, mtu: t.cfg.MTU, group: t.cfg.Group, mac: t.cfg.MAC, vni: VNI(t.driver.derive), port: t.cfg.ListenPort}
	have, remote, err := t.read()
	if err != nil {
		return false, err
	}
	if have != nil && !t.cfg.Closed && want.is(have) && !t.refuses(remote) {
		return false, nil
	}
	if have != nil {
		t.retire(have)
		if err := t.links.LinkDel(have); err != nil && !errors.Is(err, unix.ENODEV) {
			return false, fmt.Errorf("delete link: %w", err)
		}
	}
	if t.cfg.Closed {
		return have != nil, nil
	}
	t.session = session{}
	if err := t.socket.create(want); err != nil {
		return true, fmt.Errorf("create VXLAN link: %w", err)
	}
	if t.refuses(remote) {
		return true, nil
	}
	made, err := t.find()
	return true, errors.Join(err, t.setRemote(made, remote, true))
}

// refuses reports whether packets must not go to a remote end.
func (t *device) refuses(remote netip.AddrPort) bool {
	return t.cfg.Private && remote.IsValid() && cidr.Public(remote.Addr())
}

// is reports whether an existing link is this one.
func (l vxlan) is(have netlink.Link) bool {
	v, ok := have.(*netlink.Vxlan)
	return ok && uint32(v.VxlanId) == l.vni && v.Port == int(l.port) && v.PortLow == v.Port && v.PortHigh == v.Port+1 &&
		!v.Learning && !v.UDPCSum && !v.FlowBased && v.Group == nil && slices.Equal(v.HardwareAddr, l.mac)
}

// find returns the link, or nil.
func (t *device) find() (netlink.Link, error) {
	link, err := t.links.LinkByName(t.cfg.Name)
	if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read link %s: %w", t.cfg.Name, err)
	}
	return link, nil
}

// retire keeps the counters of a link that is deleted.
func (t *device) retire(link netlink.Link) {
	now := countersOf(link)
	t.past.rx, t.past.tx = t.past.rx+now.rx, t.past.tx+now.tx
}

func countersOf(link netlink.Link) counters {
	s := link.Attrs().Statistics
	if s == nil {
		return counters{}
	}
	return counters{int64(s.RxBytes), int64(s.TxBytes)}
}

// applyEndpoint sets the remote end, if it is configured and is not one of the configured endpoints.
func (t *device) applyEndpoint() (changed bool, err error) {
	link, current, err := t.read()
	if err != nil {
		return false, err
	}
	next, err := t.endpoints.Choose(t.cfg.Endpoints, slices.Equal(t.cfg.Endpoints, t.chosen), current)
	if err == nil {
		err = t.setRemote(link, next, true)
	}
	if err != nil {
		return false, err
	}
	t.chosen = t.cfg.Endpoints
	return next.IsValid(), nil
}

// read returns the link and its remote end, which is the zero value before it is known.
func (t *device) read() (netlink.Link, netip.AddrPort, error) {
	link, err := t.find()
	if err != nil || link == nil {
		return link, netip.AddrPort{}, err
	}
	remote, err := t.socket.remote(link.Attrs().Index, t.cfg.PeerMAC, portOf(link))
	return link, remote, err
}

// ListenPort returns the listen port of the tunnel that an earlier process opened; 0: there is none.
func ListenPort(name string) uint16 {
	link, _ := netlink.LinkByName(name)
	return portOf(link)
}

// portOf returns the port on which a link listens; 0: it is no VXLAN link.
func portOf(link netlink.Link) uint16 {
	if v, ok := link.(*netlink.Vxlan); ok {
		return uint16(v.Port)
	}
	return 0
}

// setRemote sets the remote end; a new session begins with it, or the current one continues.
func (t *device) setRemote(link netlink.Link, remote netip.AddrPort, anew bool) error {
	switch {
	case link == nil || !remote.IsValid():
		return nil
	case t.refuses(remote):
		return fmt.Errorf("set remote end of %s: %s is public: packets without encryption must not go there", t.cfg.Name, remote.Addr())
	}
	if err := t.socket.setRemote(link.Attrs().Index, t.cfg.PeerMAC, remote); err != nil {
		return fmt.Errorf("set remote end of %s: %w", t.cfg.Name, err)
	}
	t.endpoints.Sought = remote
	if anew {
		t.session = session{before: countersOf(link).rx}
		t.log.Info("tunnel's remote end set", "endpoint", remote)
	}
	return nil
}

// Renew implements tunnel.Tunnel. A server has no endpoint to try.
func (t *device) Renew(ctx context.Context, others, taken []netip.Addr) error {
	t.mu.Lock()
	wanted, find := t.cfg.Endpoints, t.endpoints.Lookup
	t.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	candidates, err := endpoints.Resolve(ctx, find, wanted)
	if err != nil {
		t.log.Warn("some endpoints do not resolve", "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("renew tunnel %s: %w", t.cfg.Name, err)
	}
	link, current, err := t.read()
	if err != nil {
		return fmt.Errorf("renew tunnel %s: %w", t.cfg.Name, err)
	}
	return t.setRemote(link, t.endpoints.Next(candidates, current, others, taken), true)
}

// RenewAt implements tunnel.Tunnel.
func (t *device) RenewAt(endpoint netip.AddrPort) error { return t.moveTo(endpoint, true) }

// MoveTo implements tunnel.Tunnel.
func (t *device) MoveTo(endpoint netip.AddrPort) error { return t.moveTo(endpoint, false) }

func (t *device) moveTo(endpoint netip.AddrPort, anew bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	link, err := t.find()
	if err != nil {
		return err
	}
	return t.setRemote(link, endpoint, anew)
}

// watch lets a server follow its client, until ctx ends.
func (t *device) watch(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var failed bool // the first of several errors is logged
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := t.followClient()
		if err != nil && !failed && ctx.Err() == nil {
			t.log.Warn("follow the tunnel's client", "error", err)
		}
		failed = err != nil
	}
}

// followEvery is the interval at which a server reads the senders.
const followEvery = 100 * time.Millisecond

func (t *device) followClient() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.cfg.Endpoints) > 0 || t.cfg.Closed {
		return nil
	}
	senders, err := t.driver.senders(t.cfg.ListenPort)
	if senders = answerable(senders, t.cfg.Private); err != nil || len(senders) == 0 {
		return err
	}
	link, current, err := t.read()
	if err != nil || link == nil {
		return err
	}
	if next := follow(current, senders); next != current {
		return t.setRemote(link, next, false) // the filter has accepted its packets: the session continues
	}
	return nil
}

// Stats implements tunnel.Tunnel.
func (t *device) Stats() (tunnel.Stats, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stats := tunnel.Stats{Implementation: Implementation, RxBytes: t.past.rx, TxBytes: t.past.tx}
	link, remote, err := t.read()
	if err != nil {
		return stats, fmt.Errorf("tunnel %s: %w", t.cfg.Name, err)
	}
	if link == nil {
		stats.Changed = !t.cfg.Closed
		return stats, nil
	}
	now := countersOf(link)
	stats.RxBytes, stats.TxBytes, stats.Endpoint = stats.RxBytes+now.rx, stats.TxBytes+now.tx, remote
	if t.session.since.IsZero() && remote.IsValid() && now.rx > t.session.before {
		t.session.since = time.Now()
	}
	stats.Session = tunnel.Session{Since: t.session.since, Usable: !t.session.since.IsZero()}
	return stats, nil
}

// Close implements tunnel.Tunnel. Without remove, the kernel continues to carry packets.
func (t *device) Close(remove bool) error {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.links.Close()
	defer func() { _ = t.socket.close() }()
	if !remove {
		return nil
	}
	link, err := t.find()
	if err != nil || link == nil {
		return err
	}
	return t.links.LinkDel(link)
}
