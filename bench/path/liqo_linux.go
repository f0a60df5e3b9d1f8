package path

import (
	"fmt"
	"net/netip"
	"strings"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// Elements of the model of Liqo's path. Section "Model of Liqo's path" of docs/contributing/measurements.md names
// the part of Liqo's documentation for each element, and the assumptions.
const (
	// LiqoMTU is the default MTU of Liqo's links, in bytes.
	LiqoMTU = 1340
	// CommonMTU is the MTU of the other paths.
	CommonMTU = clusters.PathMTU

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
	return b.way(func() load.Way { return fromPodToPod(b.liqoModel(mtu)) })
}

func (b *Bed) liqoModel(mtu int) (client, server *clusters.Cluster) {
	client, server = b.pair()
	for _, c := range []struct{ end, peer *clusters.Cluster }{{server, client}, {client, server}} {
		b.liqoNode(c.end, c.peer, mtu)
		b.liqoGateway(c.end, c.peer, mtu)
	}
	return client, server
}

// liqoNode creates the objects of Liqo's fabric on a node.
func (b *Bed) liqoNode(c, peer *clusters.Cluster, mtu int) {
	rules := liqoRoutes{table: liqoTableNode}
	rules.add("to "+liqoGateway, liqoGateway+" dev "+liqoNodeLink+" scope link")
	var nat []string
	for _, remote := range []netip.Prefix{peer.Remapped, clusters.PeerExternal} {
		rules.add("to "+remote.String(), remote.String()+" via "+liqoGateway)
		nat = append(nat,
			fmt.Sprintf("ip daddr %s ip saddr %s snat ip prefix to %s", remote, clusters.PodCIDR, clusters.PodCIDR),
			fmt.Sprintf("ip daddr %s ip saddr != %s snat to %s", remote, clusters.PodCIDR, liqoUnknown))
	}
	// Liqo's chain has priority 99 and must be the first.
	c.Node(0).Masquerade(clusters.CommonMasquerade, []netip.Prefix{clusters.PodCIDR}, []netip.Prefix{clusters.PodCIDR})
	b.overlay(c.Nodes[0], liqoNodeLink, c.Gateways[0].Address(), mtu, liqoNode+"/32")
	c.Nodes[0].IP(rules.lines...)
	c.Nodes[0].Chain("masquerade-bypass", "pre-postrouting", "nat hook postrouting priority 99", nat...)
}

// liqoGateway creates the objects in the namespace of Liqo's gateway pod.
func (b *Bed) liqoGateway(c, peer *clusters.Cluster, mtu int) {
	g := c.Gateways[0]
	g.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
	t := tunnelTo(c, peer, liqoTunnel)
	toPeer := t.AllowedIPs[0].Addr()
	t.MTU, t.AllowedIPs = mtu, []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	b.openTunnel(g.Namespace, t)
	b.overlay(g.Namespace, liqoGatewayLink, bridgeAddress, mtu, liqoGateway+"/32")
	g.IP(liqoGatewayRules(peer, toPeer)...)
	liqoGatewayChains(g.Namespace, peer, mtu)
}

// liqoGatewayRules returns the route configurations of the gateway. The kernel inserts each rule without a priority
// before the existing ones: the rules for packets of pods are added last, which is the cheapest order for them.
func liqoGatewayRules(peer *clusters.Cluster, tunnel netip.Addr) []string {
	nodePort := liqoRoutes{table: liqoTableNodePort}
	nodePort.add(fmt.Sprintf("fwmark %d to %s", liqoMark, liqoUnknown), fmt.Sprintf("%s via %s dev %s onlink", liqoUnknown, liqoNode, liqoGatewayLink))
	external := liqoRoutes{table: liqoTableExternal}
	external.add("iif " + liqoTunnel + " to " + peer.Remapped.String())
	external.add("iif "+liqoTunnel, fmt.Sprintf("10.111.0.1 via %s dev %s onlink", liqoNode, liqoGatewayLink))
	pods := liqoRoutes{table: liqoTablePods}
	pods.add("to "+liqoNode, liqoNode+" dev "+liqoGatewayLink+" scope link")
	pods.add("iif "+liqoTunnel, podAddress.String()+" via "+liqoNode)
	toPeer := liqoRoutes{table: liqoTablePeer}
	for _, remote := range []netip.Prefix{clusters.PodCIDR, clusters.ExternalCIDR} {
		toPeer.add(fmt.Sprintf("iif %s to %s", liqoGatewayLink, remote), fmt.Sprintf("%s via %s", remote, tunnel))
	}
	return append(append(nodePort.lines, external.lines...), append(pods.lines, toPeer.lines...)...)
}

// liqoGatewayChains adds the firewall configurations of the gateway.
func liqoGatewayChains(ns netns.Namespace, peer *clusters.Cluster, mtu int) {
	ns.Chain("service-nodeport-routing", "mark-to-conntrack", "filter hook forward priority 0",
		fmt.Sprintf("ip saddr %s iifname %s ct mark set %d", liqoUnknown, liqoGatewayLink, liqoMark))
	ns.Chain("service-nodeport-routing", "conntrack-mark-to-meta-mark", "filter hook prerouting priority 0",
		fmt.Sprintf("ip daddr %s iifname %s meta mark set ct mark", liqoUnknown, liqoTunnel))
	ns.Chain("mss-clamping", "mss-clamping", "filter hook forward priority 0",
		// 40 = IPv4 20 + TCP 20.
		fmt.Sprintf("oifname %s tcp flags syn tcp option maxseg size set %d", liqoTunnel, mtu-40))
	for name, m := range map[string]struct{ real, seen netip.Prefix }{
		"remap-podcidr": {clusters.PodCIDR, peer.Remapped}, "remap-externalcidr": {clusters.ExternalCIDR, clusters.PeerExternal},
	} {
		ns.Chain(name, "outgoing", "nat hook prerouting priority -100",
			fmt.Sprintf("ip daddr %s iifname != eth0 iifname != %s dnat ip prefix to %s", m.seen, liqoTunnel, m.real))
		ns.Chain(name, "incoming", "nat hook postrouting priority 100",
			fmt.Sprintf("oifname != eth0 ip saddr %s iifname %s snat ip prefix to %s", m.real, liqoTunnel, m.seen))
	}
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
