package path

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// Addresses of the baseline's overlay.
const (
	baselineNodeAddress    = "10.80.0.1"
	baselineGatewayAddress = "10.80.0.2"
)

// Baseline builds the simplest path from pod to pod: one overlay device in each node and gateway, routes, and the
// translation that equal CIDRs need. It has no filters and does not react to changes.
func (b *Bed) Baseline() (load.Way, error) {
	return b.way(func() load.Way {
		client, server := b.pair()
		b.openTunnels(client, server)
		b.baselineSide(client, server)
		b.baselineSide(server, client)
		return fromPodToPod(client, server)
	})
}

func (b *Bed) baselineSide(c, peer *clusters.Cluster) {
	node, gateway, pods := c.Nodes[0], c.Gateways[0], c.PodsOf(0)
	b.baselineOverlay(node, baselineNodeAddress, gateway.Address())
	node.IP(fmt.Sprintf("route add %s via %s dev overlay mtu %d", peer.Remapped, baselineGatewayAddress, clusters.PathMTU))
	// The source stays, whatever the CNI would masquerade.
	node.Chain("baseline", "source", "nat hook postrouting priority 80",
		fmt.Sprintf("oifname overlay ip saddr %s snat ip prefix to ip saddr map { %s : %s }", pods, pods, pods))
	gateway.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	b.baselineOverlay(gateway.Namespace, baselineGatewayAddress, bridgeAddress)
	gateway.IP(
		"rule add pref 1 iif overlay lookup 101",
		"rule add pref 2 iif "+wireGuardLink+" lookup 102",
		fmt.Sprintf("route add %s dev %s mtu %d table 101", clusters.PodCIDR, wireGuardLink, clusters.PathMTU),
		fmt.Sprintf("route add %s via %s dev overlay mtu %d table 102", clusters.PodCIDR, baselineNodeAddress, clusters.PathMTU))
	gateway.Chain("baseline", "destination", "nat hook prerouting priority -100",
		fmt.Sprintf("iifname overlay dnat ip prefix to ip daddr map { %s : %s }", peer.Remapped, clusters.PodCIDR))
	gateway.Chain("baseline", "source", "nat hook postrouting priority 100",
		fmt.Sprintf("oifname overlay snat ip prefix to ip saddr map { %s : %s }", clusters.PodCIDR, peer.Remapped))
	gateway.Chain("baseline", "clamp", "filter hook forward priority 0", "tcp flags syn tcp option maxseg size set rt mtu")
}

// likeGeneve are the options without which VXLAN does more work per packet than Geneve and than liqonet's VXLAN.
func (b *Bed) likeGeneve() string {
	if b.kinds.Overlay == records.VXLAN {
		return " nolearning noudpcsum"
	}
	return ""
}

func (b *Bed) baselineOverlay(ns netns.Namespace, address string, far netip.Addr) {
	b.overlay(ns, "overlay", far, overlayMTU, address+"/24")
}

// overlay creates one end of an overlay link.
func (b *Bed) overlay(ns netns.Namespace, name string, far netip.Addr, mtu int, address string) {
	ns.IP(
		fmt.Sprintf("link add %s mtu %d type %s id %d remote %s dstport %d%s", name, mtu, b.kinds.Overlay, overlayID, far, overlayPort, b.likeGeneve()),
		"link set "+name+" up",
		fmt.Sprintf("addr add %s dev %s", address, name))
}
