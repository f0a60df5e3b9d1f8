package netops

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// Exposed is a host outside the cluster that the peer may reach, by an address of this cluster's external CIDR.
//
// The gateway's pod reaches it as any pod does, by its own link. Unlike all other translation of a gateway this
// is not 1:1: the host sees the gateway's pod, or what the CNI makes of it, so that it needs no route to the peer.
type Exposed = cidr.Exposed

// podLink is what container runtimes call a pod's link (the CNI's variable CNI_IFNAME).
const podLink = "eth0"

// Names of the sets of exposed hosts.
const (
	setReal    = "real"    // the peer, as it calls itself
	setExposed = "exposed" // their external addresses
	setHosts   = "hosts"   // their own
)

// toHost is the connection mark of flows from the peer to exposed hosts.
const toHost = 3

// exposure is what a gateway has for exposed hosts, to be put beside what it has anyway. The zero value: no host
// is exposed. Packets are checked before translation and after it: with any one rule or route missing, nothing
// goes elsewhere or leaves with an address of the peer.
type exposure struct {
	links []Link
	rules []Rule
	sets  []nft.Set

	fromTunnel []nft.Rule  // what is left to these chains
	forward    []nft.Rule  // what passes
	dnat       []nft.Rule  // to the hosts
	errors     []nft.Rule  // where the gateway's own ICMP errors go
	chains     []nft.Chain // of their own
}

func (c GatewayConfig) exposure() exposure {
	if len(c.Exposed) == 0 {
		return exposure{}
	}
	var addresses, hosts, real []netip.Prefix
	var dnat []nft.Rule // one each: the hosts' addresses have nothing in common
	for _, e := range c.Exposed {
		addresses, hosts = append(addresses, cidr.Single(e.Address)), append(hosts, cidr.Single(e.Host))
		dnat = append(dnat, nft.Rule{nft.IIfGroup(GroupTunnel), nft.DAddr(cidr.Single(e.Address)), nft.DNAT(e.Host)})
	}
	for _, m := range c.Peer {
		real = append(real, m.Real)
	}
	// Without a mark, by incoming link or by address, both ways would be looked for among this cluster's pods. That one
	// mark serves both makes each the other's way back, as a strict reverse path filter wants it.
	rules := []Rule{{Priority: priorityExposed, Mark: markExposed, IIf: podLink, Table: ToPeer}}
	for _, t := range c.Tunnels {
		rules = append(rules, Rule{Priority: priorityExposed, Mark: markExposed, IIf: t.Link, Table: mainTable})
	}
	flow, reply, related := nft.CTMark(toHost), nft.CTDirection(nft.Reply), nft.CTState(nft.Related)
	return exposure{
		links: []Link{{Name: podLink, Kind: KindDevice, Forwarding: true, MarkedPath: true}},
		rules: rules,
		sets: []nft.Set{
			nft.NewSet(setReal, real...),
			{Name: setExposed, Hosts: true, Elements: cidr.Outermost(addresses)},
			{Name: setHosts, Hosts: true, Elements: cidr.Outermost(hosts)},
		},
		fromTunnel: []nft.Rule{{nft.DAddrIn(setExposed), nft.Accept()}},
		forward: []nft.Rule{
			{nft.IIfGroup(GroupTunnel), nft.OIf(podLink), flow, nft.DAddrIn(setHosts), nft.Accept()},
			{nft.IIf(podLink), nft.OIfGroup(GroupTunnel), flow, reply, nft.SAddrIn(setHosts), nft.Accept()},
			{nft.IIf(podLink), nft.OIfGroup(GroupTunnel), flow, reply, related, nft.Accept()}, // ICMP errors of routers
		},
		dnat: dnat,
		errors: []nft.Rule{
			{related, flow, reply, nft.SetMark(markError), nft.Accept()},
			{related, flow, nft.CTDirection(nft.Original), nft.Accept()},
		},
		chains: c.exposedFlows(),
	}
}

// exposedFlows are the chains through which connections to exposed hosts go, and their answers.
func (c GatewayConfig) exposedFlows() []nft.Chain {
	flow := nft.CTMark(toHost)
	fromPeer := nft.Rule{nft.IIfGroup(GroupTunnel), nft.SAddrIn(setReal), nft.DAddrIn(setExposed)}
	first := append(slices.Clone(fromPeer), nft.CTState(nft.New), nft.SetCTMark(toHost), nft.SetMark(markExposed), nft.Accept())
	later := append(slices.Clone(fromPeer), flow, nft.SetMark(markExposed), nft.Accept())
	return []nft.Chain{
		{Name: "exposed", Hook: &nft.Hook{Type: "filter", Point: "prerouting", Priority: priorityConnections}, Rules: []nft.Rule{
			first, later,
			{nft.IIfGroup(GroupTunnel), nft.DAddrIn(setExposed), nft.Counter(), nft.Drop()},
			{nft.IIf(podLink), flow, nft.CTDirection(nft.Reply), nft.SetMark(markExposed)},
		}},
		{Name: "source", Hook: &nft.Hook{Type: "nat", Point: "postrouting", Priority: prioritySNAT}, Rules: []nft.Rule{
			{nft.OIf(podLink), flow, nft.SNAT(c.Pod)},
		}},
		{Name: "egress", Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityAfterSNAT}, Rules: []nft.Rule{
			{nft.OIf(podLink), flow, nft.SAddrNot(cidr.Single(c.Pod)), nft.Counter(), nft.Drop()},
		}},
	}
}
