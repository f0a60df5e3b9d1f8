package netops

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// Exposed is a host outside the cluster that the peer reaches by an address of this cluster's external CIDR.
//
// The gateway pod sends to it over its own link, as any pod does. Unlike all other translation of a gateway this is not
// 1:1: the host receives packets from the gateway pod's address, or its masqueraded form, so that it needs no route to
// the peer.
type Exposed = cidr.Exposed

// PodLink is the name of a pod's link in container runtimes (the CNI's variable CNI_IFNAME).
const PodLink = "eth0"

// Names of the sets for exposed hosts.
const (
	setReal    = "real"    // the peer's real addresses
	setExposed = "exposed" // external addresses of the hosts
	setHosts   = "hosts"   // own addresses of the hosts
)

// toHost is the connection mark of flows from the peer to exposed hosts.
const toHost = 3

// exposure is the part of a gateway's state for exposed hosts. The zero value: no host is exposed. Packets are checked
// before and after translation: if any single rule or route is missing, no packet is misrouted or leaves with an
// address of the peer.
type exposure struct {
	links []Link
	rules []Rule
	sets  []nft.Set

	fromTunnel []nft.Rule  // accepted by this chain of the gateway
	forward    []nft.Rule  // forwarded
	dnat       []nft.Rule  // to the hosts
	errors     []nft.Rule  // destinations of the gateway's own ICMP errors
	chains     []nft.Chain // additional chains
}

func (c GatewayConfig) exposure() exposure {
	if len(c.Exposed) == 0 {
		return exposure{}
	}
	var addresses, hosts, real []netip.Prefix
	var dnat []nft.Rule // one each: the hosts' addresses have no common prefix
	for _, e := range c.Exposed {
		addresses, hosts = append(addresses, cidr.Single(e.Address)), append(hosts, cidr.Single(e.Host))
		dnat = append(dnat, nft.Rule{nft.IIfGroup(GroupTunnel), nft.DAddr(cidr.Single(e.Address)), nft.DNAT(e.Host)})
	}
	for _, m := range c.Peer {
		real = append(real, m.Real)
	}
	// Routes in both directions are looked up by mark; by incoming link or address they would lead to this cluster's
	// pods. One mark for both directions makes each the reverse path of the other, as a strict reverse path filter
	// requires.
	rules := []Rule{{Priority: priorityExposed, Mark: markExposed, IIf: PodLink, Table: ToPeer}}
	for _, t := range c.Tunnels {
		rules = append(rules, Rule{Priority: priorityExposed, Mark: markExposed, IIf: t.Link, Table: MainTable})
	}
	flow, reply, related := nft.CTMark(toHost), nft.CTDirection(nft.Reply), nft.CTState(nft.Related)
	return exposure{
		links: []Link{{Name: PodLink, Kind: KindDevice, Forwarding: true, MarkedPath: true}},
		rules: rules,
		sets: []nft.Set{
			nft.NewSet(setReal, real...),
			{Name: setExposed, Hosts: true, Elements: cidr.Outermost(addresses)},
			{Name: setHosts, Hosts: true, Elements: cidr.Outermost(hosts)},
		},
		fromTunnel: []nft.Rule{{nft.DAddrIn(setExposed), nft.Accept()}},
		forward: []nft.Rule{
			{nft.IIfGroup(GroupTunnel), nft.OIf(PodLink), flow, nft.DAddrIn(setHosts), nft.Accept()},
			{nft.IIf(PodLink), nft.OIfGroup(GroupTunnel), flow, reply, nft.SAddrIn(setHosts), nft.Accept()},
			{nft.IIf(PodLink), nft.OIfGroup(GroupTunnel), flow, reply, related, nft.Accept()}, // ICMP errors of routers
		},
		dnat: dnat,
		errors: []nft.Rule{
			{related, flow, reply, nft.SetMark(markError), nft.Accept()},
			{related, flow, nft.CTDirection(nft.Original), nft.Accept()},
		},
		chains: c.exposedFlows(),
	}
}

// exposedFlows returns the chains for connections to exposed hosts and their replies.
func (c GatewayConfig) exposedFlows() []nft.Chain {
	flow := nft.CTMark(toHost)
	fromPeer := nft.Rule{nft.IIfGroup(GroupTunnel), nft.SAddrIn(setReal), nft.DAddrIn(setExposed)}
	first := append(slices.Clone(fromPeer), nft.CTState(nft.New), nft.SetCTMark(toHost), nft.SetMark(markExposed), nft.Accept())
	later := append(slices.Clone(fromPeer), flow, nft.SetMark(markExposed), nft.Accept())
	return []nft.Chain{
		{Name: "exposed", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityConnections}, Rules: []nft.Rule{
			first, later,
			{nft.IIfGroup(GroupTunnel), nft.DAddrIn(setExposed), nft.Counter(), nft.Drop()},
			{nft.IIf(PodLink), flow, nft.CTDirection(nft.Reply), nft.SetMark(markExposed)},
		}},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: prioritySNAT}, Rules: []nft.Rule{
			{nft.OIf(PodLink), flow, nft.SNAT(c.Pod)},
		}},
		{Name: "egress", Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityAfterSNAT}, Rules: []nft.Rule{
			{nft.OIf(PodLink), flow, nft.SAddrNot(cidr.Single(c.Pod)), nft.Counter(), nft.Drop()},
		}},
	}
}
