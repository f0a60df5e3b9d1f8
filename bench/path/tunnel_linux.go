package path

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/netops/tunnel"
)

// tunnelJob describes one end of a tunnel.
type tunnelJob struct {
	Link       string
	Key        wgtypes.Key
	ListenPort uint16
	Address    netip.Prefix
	PeerKey    wgtypes.Key
	Endpoint   netip.AddrPort // zero: the peer initiates
	AllowedIPs []netip.Prefix
	MTU        int
}

const keepAlive = 15 * time.Second

// tunnelTo returns the cluster's end of the tunnel to its peer.
func (c *cluster) tunnelTo(peer *cluster, link string) tunnelJob {
	t := tunnelJob{
		Link: link, Key: c.key, ListenPort: listenPort, Address: netip.PrefixFrom(c.tunnel, tunnelBits),
		PeerKey: peer.key.PublicKey(), AllowedIPs: []netip.Prefix{netip.PrefixFrom(peer.tunnel, 32), podCIDR},
		MTU: pathMTU,
	}
	if c.role == records.Client {
		t.Endpoint = netip.AddrPortFrom(peer.nodeAddress(), nodePort)
	}
	return t
}

// uapi returns the configuration for wireguard-go: https://www.wireguard.com/xplatform.
func (t tunnelJob) uapi() string {
	var b strings.Builder
	fmt.Fprintf(&b, "private_key=%s\nlisten_port=%d\npublic_key=%s\n",
		hex.EncodeToString(t.Key[:]), t.ListenPort, hex.EncodeToString(t.PeerKey[:]))
	if t.Endpoint.IsValid() {
		fmt.Fprintf(&b, "endpoint=%s\npersistent_keepalive_interval=%d\n", t.Endpoint, int(keepAlive.Seconds()))
	}
	for _, p := range t.AllowedIPs {
		fmt.Fprintf(&b, "allowed_ip=%s\n", p)
	}
	return b.String()
}

// config returns the configuration for package netops/tunnel.
func (t tunnelJob) config() tunnel.Config {
	c := tunnel.Config{
		Implementation: tunnel.Userspace, Name: t.Link, PrivateKey: tunnel.NewSecret(t.Key), ListenPort: t.ListenPort,
		MTU: t.MTU, Peer: tunnel.PeerConfig{PublicKey: t.PeerKey, AllowedIPs: t.AllowedIPs},
	}
	if t.Endpoint.IsValid() {
		c.Peer.Endpoints, c.Peer.KeepAlive = []string{t.Endpoint.String()}, keepAlive
	}
	return c
}

// configureKernel configures the kernel's device like "wg set".
func (t tunnelJob) configureKernel() error {
	port, interval := int(t.ListenPort), keepAlive
	peer := wgtypes.PeerConfig{PublicKey: t.PeerKey}
	for _, p := range t.AllowedIPs {
		peer.AllowedIPs = append(peer.AllowedIPs, net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)})
	}
	if t.Endpoint.IsValid() {
		peer.Endpoint, peer.PersistentKeepaliveInterval = net.UDPAddrFromAddrPort(t.Endpoint), &interval
	}
	client, err := wgctrl.New()
	if err != nil {
		return err
	}
	return errors.Join(client.ConfigureDevice(t.Link, wgtypes.Config{
		PrivateKey: &t.Key, ListenPort: &port, Peers: []wgtypes.PeerConfig{peer},
	}), client.Close())
}

// openTunnel creates one end, without package netops/tunnel.
func (b *Bed) openTunnel(ns netns.Handle, t tunnelJob) error {
	if b.kinds.WireGuard == records.Kernel {
		if err := b.ip(ns, fmt.Sprintf("link add %s mtu %d type wireguard", t.Link, t.MTU)); err != nil {
			return err
		}
		if err := ns.Do(t.configureKernel); err != nil {
			return fmt.Errorf("configure WireGuard device %s: %w", t.Link, err)
		}
	} else if err := b.startTunnel(ns, Job{Upstream: &t}); err != nil {
		return err
	}
	return b.setUp(ns, t)
}

// setUp sets the address and MTU of a tunnel's link.
func (b *Bed) setUp(ns netns.Handle, t tunnelJob) error {
	return b.ip(ns, fmt.Sprintf("addr add %s dev %s", t.Address, t.Link), fmt.Sprintf("link set %s mtu %d up", t.Link, t.MTU))
}

// wireGuardLink is the link of a tunnel without package netops/tunnel.
const wireGuardLink = "wg0"

// openTunnels creates both ends. The server listens first, as a handshake is not answered before.
func (b *Bed) openTunnels(client, server *cluster) error {
	return errors.Join(
		b.openTunnel(server.gateway, server.tunnelTo(client, wireGuardLink)),
		b.openTunnel(client.gateway, client.tunnelTo(server, wireGuardLink)))
}

// Gateways are the gateways of two clusters, with only a link between them: traffic begins and ends in them.
type Gateways struct {
	bed            *Bed
	client, server *cluster
}

// Gateways creates two clusters for tunnels alone.
func (b *Bed) Gateways() (Gateways, error) {
	client, server, err := b.clusters()
	return Gateways{b, client, server}, err
}

// Tunnel returns the tunnel without package netops/tunnel.
func (g Gateways) Tunnel() (load.Way, error) {
	if err := g.bed.openTunnels(g.client, g.server); err != nil {
		return load.Way{}, err
	}
	return g.way(g.server.tunnel)
}

// OwnTunnel returns the tunnel that runs in the process of a liqonet gateway.
func (g Gateways) OwnTunnel() (load.Way, error) {
	var errs []error
	for _, c := range []struct{ end, peer *cluster }{{g.server, g.client}, {g.client, g.server}} {
		t := secondTunnel(c.end.tunnelTo(c.peer, "own"))
		if err := g.bed.startTunnel(c.end.gateway, Job{Own: &t}); err != nil {
			return load.Way{}, err
		}
		errs = append(errs, g.bed.setUp(c.end.gateway, t))
	}
	if err := errors.Join(errs...); err != nil {
		return load.Way{}, err
	}
	return g.way(second(g.server.tunnel))
}

func (g Gateways) way(server netip.Addr) (load.Way, error) {
	return g.bed.complete(load.Way{From: g.client.gateway, To: g.server.gateway, Address: server})
}

// secondTunnel gives a second tunnel of the same gateways other addresses and ports.
func secondTunnel(t tunnelJob) tunnelJob {
	t.ListenPort++
	t.Address = netip.PrefixFrom(second(t.Address.Addr()), tunnelBits)
	if t.Endpoint.IsValid() {
		t.Endpoint = netip.AddrPortFrom(t.Endpoint.Addr(), t.Endpoint.Port()+1)
	}
	t.AllowedIPs = []netip.Prefix{netip.PrefixFrom(second(t.AllowedIPs[0].Addr()), 32)}
	return t
}

// second returns the address in the range of the gateways' second tunnel.
func second(a netip.Addr) netip.Addr {
	b := a.As4()
	b[2]++
	return netip.AddrFrom4(b)
}
