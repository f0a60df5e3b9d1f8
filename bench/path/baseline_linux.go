package path

import (
	"errors"
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
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
	client, server, err := b.clusters()
	if err != nil {
		return load.Way{}, err
	}
	if err := b.openTunnels(client, server); err != nil {
		return load.Way{}, err
	}
	if err := errors.Join(b.baselineSide(client, server), b.baselineSide(server, client)); err != nil {
		return load.Way{}, err
	}
	return b.complete(load.Way{From: client.pod, To: server.pod, Address: server.seenPod()})
}

func (b *Bed) baselineSide(c, peer *cluster) error {
	return errors.Join(
		b.baselineOverlay(c.node, baselineNodeAddress, gatewayAddress),
		b.ip(c.node, fmt.Sprintf("route add %s via %s dev overlay mtu %d", peer.seen, baselineGatewayAddress, pathMTU)),
		// The source stays, whatever the CNI would masquerade.
		b.nft(c.node, "table ip baseline {", "chain source { type nat hook postrouting priority 80",
			fmt.Sprintf("oifname overlay ip saddr %s snat ip prefix to ip saddr map { %s : %s }", nodePodCIDR, nodePodCIDR, nodePodCIDR),
			"}", "}"),
		b.baselineGateway(c.gateway, peer))
}

// vxlanOptions are the options without which VXLAN does more work per packet than Geneve and than liqonet's VXLAN.
func (b *Bed) likeGeneve() string {
	if b.kinds.Overlay == records.VXLAN {
		return " nolearning noudpcsum"
	}
	return ""
}

func (b *Bed) baselineOverlay(ns netns.Handle, address string, far netip.Addr) error {
	return b.ip(ns,
		fmt.Sprintf("link add overlay mtu %d type %s id %d remote %s dstport %d%s", overlayMTU, b.kinds.Overlay, overlayID, far, overlayPort, b.likeGeneve()),
		fmt.Sprintf("addr add %s/24 dev overlay", address),
		"link set overlay up")
}

func (b *Bed) baselineGateway(ns netns.Handle, peer *cluster) error {
	if _, err := ns.Run(b.ctx, "", "sysctl", "-qw", "net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	return errors.Join(
		b.baselineOverlay(ns, baselineGatewayAddress, bridgeAddress),
		b.ip(ns,
			"rule add pref 1 iif overlay lookup 101",
			"rule add pref 2 iif "+wireGuardLink+" lookup 102",
			fmt.Sprintf("route add %s dev %s mtu %d table 101", podCIDR, wireGuardLink, pathMTU),
			fmt.Sprintf("route add %s via %s dev overlay mtu %d table 102", podCIDR, baselineNodeAddress, pathMTU)),
		b.nft(ns, "table ip baseline {",
			"chain destination { type nat hook prerouting priority -100",
			fmt.Sprintf("iifname overlay dnat ip prefix to ip daddr map { %s : %s }", peer.seen, podCIDR), "}",
			"chain source { type nat hook postrouting priority 100",
			fmt.Sprintf("oifname overlay snat ip prefix to ip saddr map { %s : %s }", podCIDR, peer.seen), "}",
			"chain clamp { type filter hook forward priority 0",
			"tcp flags syn tcp option maxseg size set rt mtu", "}", "}"))
}
