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
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
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

// tunnelTo returns the end of a cluster's gateway of the tunnel to the peer's.
func tunnelTo(c, peer *clusters.Cluster, link string) tunnelJob {
	record := c.Tunnel(c.Gateways[0], peer, peer.Gateways[0])
	local, remote := c.Record(peer).TunnelAddresses(1, 1)
	t := tunnelJob{
		Link: link, Key: c.Gateways[0].Key, ListenPort: record.ListenPort, Address: local,
		PeerKey: peer.Gateways[0].Key.PublicKey(), AllowedIPs: []netip.Prefix{netip.PrefixFrom(remote, 32), clusters.PodCIDR},
		MTU: clusters.PathMTU,
	}
	if !c.Serves {
		t.Endpoint = netip.MustParseAddrPort(record.Endpoints[0])
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

// config returns the configuration for package netops/tunnel/wireguard.
func (t tunnelJob) config() wireguard.Config {
	c := wireguard.Config{
		Config:     tunnel.Config{Implementation: wireguard.Userspace, Name: t.Link, ListenPort: t.ListenPort, MTU: t.MTU, AllowedIPs: t.AllowedIPs},
		PrivateKey: wireguard.NewSecret(t.Key), PublicKey: t.PeerKey,
	}
	if t.Endpoint.IsValid() {
		c.Endpoints, c.KeepAlive = []string{t.Endpoint.String()}, keepAlive
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

// openTunnel creates one end, without package netops/tunnel/wireguard.
func (b *Bed) openTunnel(ns netns.Namespace, t tunnelJob) {
	if b.kinds.WireGuard == records.Kernel {
		ns.IP(fmt.Sprintf("link add %s mtu %d type wireguard", t.Link, t.MTU))
		ns.Inside(t.configureKernel)
	} else {
		b.startTunnel(ns, Job{Upstream: &t})
	}
	setUp(ns, t)
}

// setUp sets the address and MTU of a tunnel's link.
func setUp(ns netns.Namespace, t tunnelJob) {
	ns.IP(fmt.Sprintf("addr add %s dev %s", t.Address, t.Link), fmt.Sprintf("link set %s mtu %d up", t.Link, t.MTU))
}

// wireGuardLink is the link of a tunnel without package netops/tunnel/wireguard.
const wireGuardLink = "wg0"

// openTunnels creates both ends. The server listens first, as a handshake is not answered before.
func (b *Bed) openTunnels(client, server *clusters.Cluster) {
	b.openTunnel(server.Gateways[0].Namespace, tunnelTo(server, client, wireGuardLink))
	b.openTunnel(client.Gateways[0].Namespace, tunnelTo(client, server, wireGuardLink))
}

// Gateways are the gateways of two clusters, with only a link between them: traffic begins and ends in them.
type Gateways struct {
	bed            *Bed
	client, server *clusters.Cluster
}

// Gateways creates two clusters for tunnels alone.
func (b *Bed) Gateways() (g Gateways, err error) {
	err = try(func() {
		client, server := b.pair()
		g = Gateways{b, client, server}
	})
	return g, err
}

// Tunnel returns the tunnel without package netops/tunnel/wireguard.
func (g Gateways) Tunnel() (load.Way, error) {
	return g.bed.way(func() load.Way {
		g.bed.openTunnels(g.client, g.server)
		return g.to(tunnelTo(g.server, g.client, wireGuardLink))
	})
}

// OwnTunnel returns the tunnel that runs in the process of a liqonet gateway.
func (g Gateways) OwnTunnel() (load.Way, error) {
	return g.bed.way(func() load.Way {
		for _, c := range []struct{ end, peer *clusters.Cluster }{{g.server, g.client}, {g.client, g.server}} {
			t := secondTunnel(tunnelTo(c.end, c.peer, "own"))
			g.bed.startTunnel(c.end.Gateways[0].Namespace, Job{Own: &t})
			setUp(c.end.Gateways[0].Namespace, t)
		}
		return g.to(secondTunnel(tunnelTo(g.server, g.client, "own")))
	})
}

// to is the path to the server's end of a tunnel.
func (g Gateways) to(t tunnelJob) load.Way {
	return load.Way{From: g.client.Gateways[0].Handle, To: g.server.Gateways[0].Handle, Address: t.Address.Addr()}
}

// secondTunnel gives a second tunnel of the same gateways other addresses and ports.
func secondTunnel(t tunnelJob) tunnelJob {
	t.ListenPort++
	t.Address = netip.PrefixFrom(second(t.Address.Addr()), t.Address.Bits())
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
