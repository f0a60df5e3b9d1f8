package netops

import "liqonet.io/liqonet/netops/nft"

// firewall6 is the ip6 table of a node or gateway: overlay and tunnel carry IPv4 over IPv4. A gateway's overlay still
// listens on an IPv6 socket (see LinkKind), which all neighbours with link-local addresses reach, and inner IPv6
// packets would be forwarded if the host forwards IPv6. ARP is disabled on these links.
//
// Fragments do not bypass it: a fragment with the UDP header is dropped, and without that one the packet is not
// reassembled (a first fragment must have all headers, RFC 7112; ipv6_frag_rcv in net/ipv6/reassembly.c).
func firewall6(overlayPort uint16) nft.Table {
	return nft.Table{Family: nft.IP6, Name: Table, Chains: []nft.Chain{
		{Name: "ipv6-outer", Hook: &nft.Hook{Type: "filter", Point: "input", Priority: priorityFilter}, Rules: []nft.Rule{
			{nft.UDPDPort(overlayPort), nft.Counter(), nft.Drop()},
		}},
		{Name: "ipv6-arrival", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityRaw}, Rules: []nft.Rule{
			{nft.IIfPrefix(Prefix), nft.Counter(), nft.Drop()},
		}},
		{Name: "ipv6-departure", Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityGuard}, Rules: []nft.Rule{
			{nft.OIfPrefix(Prefix), nft.Counter(), nft.Drop()},
		}},
	}}
}
