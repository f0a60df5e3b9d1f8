package path

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// Elements of the model of Liqo's path. Section "Model of Liqo's path" of docs/performance.md names the part of Liqo's
// documentation for each element, and the assumptions.
const (
	// LiqoMTU is the default MTU of Liqo's links, in bytes.
	LiqoMTU = 1340
	// CommonMTU is the MTU of the other paths.
	CommonMTU = pathMTU

	liqoTunnel      = "liqo-tunnel"
	liqoNodeLink    = "liqo.gateway" // on the node, one for each gateway
	liqoGatewayLink = "liqo.node"    // in the gateway, one for each node
	liqoNode        = "10.80.0.1"
	liqoGateway     = "10.80.0.2"
	liqoUnknown     = "10.70.0.0" // source of packets that are not from a pod: first address of the external CIDR
	liqoMark        = 1           // of the node's connections
)

// Tables of Liqo's route configurations.
const (
	liqoTableNode     = 1001 // on the node
	liqoTableNodePort = 1002
	liqoTableExternal = 1003
	liqoTablePods     = 1004
	liqoTablePeer     = 1005
)

// LiqoModel builds a model of Liqo's path manually, without its processes: one overlay device for each pair of node and
// gateway, rules and routes for each CIDR and pod, translation by connection tracking. The MTU, in bytes, applies to
// tunnel and overlay.
func (b *Bed) LiqoModel(mtu int) (load.Way, error) {
	client, server, err := b.clusters()
	if err != nil {
		return load.Way{}, err
	}
	return b.modelLiqo(client, server, mtu)
}

func (b *Bed) modelLiqo(client, server *cluster, mtu int) (load.Way, error) {
	for _, c := range []struct{ end, peer *cluster }{{server, client}, {client, server}} {
		if err := errors.Join(b.liqoNode(c.end, c.peer, mtu), b.liqoGateway(c.end, c.peer, mtu)); err != nil {
			return load.Way{}, fmt.Errorf("cluster %s: %w", c.end.name, err)
		}
	}
	return b.complete(load.Way{From: client.pod, To: server.pod, Address: server.seenPod()})
}

// liqoNode creates the objects of Liqo's fabric on a node.
func (b *Bed) liqoNode(c, peer *cluster, mtu int) error {
	rules := liqoRoutes{table: liqoTableNode}
	rules.add("to "+liqoGateway, liqoGateway+" dev "+liqoNodeLink+" scope link")
	for _, remote := range []netip.Prefix{peer.seen, peerExternal} {
		rules.add("to "+remote.String(), remote.String()+" via "+liqoGateway)
	}
	nat := []string{"table ip masquerade-bypass {", "chain pre-postrouting { type nat hook postrouting priority 99"}
	for _, remote := range []netip.Prefix{peer.seen, peerExternal} {
		nat = append(nat,
			fmt.Sprintf("ip daddr %s ip saddr %s snat ip prefix to %s", remote, podCIDR, podCIDR),
			fmt.Sprintf("ip daddr %s ip saddr != %s snat to %s", remote, podCIDR, liqoUnknown))
	}
	return errors.Join(
		// Liqo's chain has priority 99 and must be the first.
		b.masquerade(c.node, commonMasquerade),
		b.liqoLink(c.node, liqoNodeLink, liqoNode, gatewayAddress, mtu),
		b.ip(c.node, rules.lines...),
		b.nft(c.node, append(nat, "}", "}")...))
}

// liqoGateway creates the objects in the namespace of Liqo's gateway pod.
func (b *Bed) liqoGateway(c, peer *cluster, mtu int) error {
	for _, setting := range []string{"ip_forward=1", "conf.all.rp_filter=0", "conf.default.rp_filter=0"} {
		if _, err := c.gateway.Run(b.ctx, "", "sysctl", "-qw", "net.ipv4."+setting); err != nil {
			return err
		}
	}
	t := c.tunnelTo(peer, liqoTunnel)
	t.MTU, t.AllowedIPs = mtu, []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	return errors.Join(
		b.openTunnel(c.gateway, t),
		b.liqoLink(c.gateway, liqoGatewayLink, liqoGateway, bridgeAddress, mtu),
		b.ip(c.gateway, liqoGatewayRules(peer)...),
		b.nft(c.gateway, liqoGatewayChains(peer, mtu)...))
}

// liqoGatewayRules returns the route configurations of the gateway. The kernel inserts each rule without a priority
// before the existing ones: the rules for packets of pods are added last, which is the cheapest order for them.
func liqoGatewayRules(peer *cluster) []string {
	nodePort := liqoRoutes{table: liqoTableNodePort}
	nodePort.add(fmt.Sprintf("fwmark %d to %s", liqoMark, liqoUnknown), fmt.Sprintf("%s via %s dev %s onlink", liqoUnknown, liqoNode, liqoGatewayLink))
	external := liqoRoutes{table: liqoTableExternal}
	external.add("iif " + liqoTunnel + " to " + peer.seen.String())
	external.add("iif "+liqoTunnel, fmt.Sprintf("10.111.0.1 via %s dev %s onlink", liqoNode, liqoGatewayLink))
	pods := liqoRoutes{table: liqoTablePods}
	pods.add("to "+liqoNode, liqoNode+" dev "+liqoGatewayLink+" scope link")
	pods.add("iif "+liqoTunnel, podAddress.String()+" via "+liqoNode)
	toPeer := liqoRoutes{table: liqoTablePeer}
	for _, remote := range []netip.Prefix{podCIDR, externalCIDR} {
		toPeer.add(fmt.Sprintf("iif %s to %s", liqoGatewayLink, remote), fmt.Sprintf("%s via %s", remote, peer.tunnel))
	}
	return append(append(nodePort.lines, external.lines...), append(pods.lines, toPeer.lines...)...)
}

// liqoGatewayChains returns the firewall configurations of the gateway.
func liqoGatewayChains(peer *cluster, mtu int) []string {
	chains := []string{
		"table ip service-nodeport-routing {",
		"chain mark-to-conntrack { type filter hook forward priority 0",
		fmt.Sprintf("ip saddr %s iifname %s ct mark set %d", liqoUnknown, liqoGatewayLink, liqoMark), "}",
		"chain conntrack-mark-to-meta-mark { type filter hook prerouting priority 0",
		fmt.Sprintf("ip daddr %s iifname %s meta mark set ct mark", liqoUnknown, liqoTunnel), "}", "}",
		"table ip mss-clamping {",
		"chain mss-clamping { type filter hook forward priority 0",
		// 40 = IPv4 20 + TCP 20.
		fmt.Sprintf("oifname %s tcp flags syn tcp option maxseg size set %d", liqoTunnel, mtu-40), "}", "}",
	}
	for name, m := range map[string]struct{ real, seen netip.Prefix }{
		"remap-podcidr": {podCIDR, peer.seen}, "remap-externalcidr": {externalCIDR, peerExternal},
	} {
		chains = append(chains, "table ip "+name+" {",
			"chain outgoing { type nat hook prerouting priority -100",
			fmt.Sprintf("ip daddr %s iifname != eth0 iifname != %s dnat ip prefix to %s", m.seen, liqoTunnel, m.real), "}",
			"chain incoming { type nat hook postrouting priority 100",
			fmt.Sprintf("oifname != eth0 ip saddr %s iifname %s snat ip prefix to %s", m.real, liqoTunnel, m.seen), "}", "}")
	}
	return chains
}

// liqoLink creates one end of the overlay between a node and a gateway.
func (b *Bed) liqoLink(ns netns.Handle, name, address string, far netip.Addr, mtu int) error {
	return b.ip(ns,
		fmt.Sprintf("link add %s mtu %d type %s id %d remote %s dstport %d%s", name, mtu, b.kinds.Overlay, overlayID, far, overlayPort, b.likeGeneve()),
		"link set "+name+" up",
		fmt.Sprintf("addr add %s/32 dev %s", address, name))
}

// liqoRoutes are the lines for ip(8) of a route configuration: rules with a common table, and its routes.
type liqoRoutes struct {
	table int
	lines []string
}

func (r *liqoRoutes) add(rule string, routes ...string) {
	r.lines = append(r.lines, fmt.Sprintf("rule add %s lookup %d", rule, r.table))
	for _, route := range routes {
		r.lines = append(r.lines, fmt.Sprintf("route add %s table %d", strings.TrimSpace(route), r.table))
	}
}
