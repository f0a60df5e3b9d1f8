//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/tunnel"
)

// keepAlive keeps a client's translation on its way to the server open (RFC 4787: at least 30 s for UDP).
const keepAlive = 15 * time.Second

// gatewayView is all that a gateway knows of its cluster and its peering.
type gatewayView struct {
	fabric  records.Fabric
	peering records.Peering
	nodes   []reportedNode // sorted by name
	pod     netip.Addr     // of the gateway
}

// state returns what the kernel in the gateway's namespace is to hold.
func (v gatewayView) state() netops.State {
	p := v.peering
	c := netops.GatewayConfig{
		Overlay:      overlayConfig(v.fabric),
		Pod:          v.pod,
		Internal:     p.GatewayAddress,
		InternalCIDR: v.fabric.InternalCIDR,
		ExternalCIDR: v.fabric.ExternalCIDR,
		Pods:         v.fabric.PodCIDRs,
		Peer:         p.Peer.CIDRs(),
		VNI:          p.OverlayID,
		Tunnel:       p.Tunnel.Address,
		TunnelPeer:   p.Tunnel.PeerAddress,
		ListenPort:   listenPort(p),
		MTU:          p.MTU,
		ClampMSS:     p.ClampMSS,
	}
	for _, e := range v.exposed() {
		c.Exposed = append(c.Exposed, netops.Exposed{Host: e.Host, Address: e.Address})
	}
	for _, n := range latestFirst(v.nodes) {
		source, ok := n.OverlaySources[p.Name]
		if !ok || !cidr.Lower(v.fabric.InternalCIDR).Contains(n.Internal) {
			continue // not yet on its way to this gateway
		}
		c.Nodes = append(c.Nodes, netops.GatewayNode{
			Internal: n.Internal, Source: source,
			Pods: within(localPods{cidrs: n.PodCIDRs, stray: n.Pods}.prefixes(), v.fabric.PodCIDRs),
		})
	}
	return netops.GatewayState(c)
}

// exposed are the hosts that the peer may reach. One that has come to be inside the cluster's own ranges, or that
// would have an address of a node, is left out.
func (v gatewayView) exposed() []records.Exposed {
	f := v.fabric
	own := slices.Concat(f.PodCIDRs, f.ServiceCIDRs, []netip.Prefix{f.ExternalCIDR, f.InternalCIDR})
	var all []records.Exposed
	for _, e := range v.peering.Exposed {
		if !cidr.Contains(own, e.Host) && f.ExternalCIDR.Contains(e.Address) && !cidr.Lower(f.ExternalCIDR).Contains(e.Address) {
			all = append(all, e)
		}
	}
	return all
}

// within keeps the ranges that lie inside one of the cluster's pod CIDRs: a node cannot claim others.
func within(in, cidrs []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(in, func(p netip.Prefix) bool { return !cidr.Within(p, cidrs) })
}

// keys are this side's secrets of the tunnel.
type keys struct{ private, preshared tunnel.Secret }

// readKeys reads the mounted Secret.
func readKeys(dir string) (keys, error) {
	var k keys
	for name, into := range map[string]*tunnel.Secret{records.PrivateKeyKey: &k.private, records.PresharedKeyKey: &k.preshared} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return k, fmt.Errorf("read tunnel keys: %w", err)
		}
		if *into, err = tunnel.ParseSecret(strings.TrimSpace(string(text))); err != nil {
			return k, fmt.Errorf("read tunnel key %s: %w", name, err)
		}
	}
	return k, nil
}

// tunnel returns the wanted state of the WireGuard device. The peer may use its pod and external CIDRs and
// its tunnel address, nothing else.
func (v gatewayView) tunnel(k keys) (tunnel.Config, error) {
	p := v.peering
	public, err := wgtypes.ParseKey(p.Peer.PublicKey)
	if err != nil {
		return tunnel.Config{}, fmt.Errorf("peer's public key: %w", err)
	}
	c := tunnel.Config{
		Implementation: tunnel.Implementation(p.Tunnel.Implementation),
		Name:           netops.Tunnel,
		PrivateKey:     k.private,
		PresharedKey:   k.preshared,
		ListenPort:     listenPort(p),
		MTU:            p.MTU,
		Peer: tunnel.PeerConfig{
			PublicKey:  public,
			AllowedIPs: []netip.Prefix{cidr.Single(p.Tunnel.PeerAddress)},
			Endpoints:  p.Tunnel.Endpoints,
		},
	}
	for _, m := range p.Peer.CIDRs() {
		c.Peer.AllowedIPs = append(c.Peer.AllowedIPs, m.Real)
	}
	if p.Role == records.Client {
		c.Peer.KeepAlive = keepAlive
	}
	return c, nil
}

// listenPort is the server's port. A client takes any, another one after each renewal: a translation on the way
// that went stale is left behind so.
func listenPort(p records.Peering) uint16 {
	if p.Role == records.Client {
		return 0
	}
	return p.Tunnel.ListenPort
}
