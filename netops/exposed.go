package netops

import (
	"net/netip"

	"liqonet.io/liqonet/netops/nft"
)

// Exposed is a host outside the cluster that the peer may reach, by an address of this cluster's external CIDR.
//
// The gateway's pod reaches it as any pod does, by its own link. Unlike all other translation of a gateway this
// is not 1:1: the host sees the gateway's pod, or what the CNI makes of it, so that it needs no route to the peer.
type Exposed struct {
	Host    netip.Addr // as this cluster knows it
	Address netip.Addr // of the external CIDR
}

// podLink is what container runtimes call a pod's link (the CNI's variable CNI_IFNAME).
const podLink = "eth0"

// Names of the sets of exposed hosts.
const (
	setExposed = "exposed" // their external addresses
	setHosts   = "hosts"   // their own
)

// exposure is what a gateway has for exposed hosts, to be put beside what it has anyway. The zero value: no host
// is exposed. Packets are checked before translation and after it: with any one rule or route missing, nothing
// goes elsewhere or leaves with an address of the peer.
type exposure struct {
	links []Link
	rules []Rule
	sets  []nft.Set

	fromTunnel []nft.Rule // what the peer may send
	answers    []nft.Rule // where answers go
	forward    []nft.Rule // what passes
	dnat, snat []nft.Rule
	guard      []nft.Rule // after translation
	errors     []nft.Rule // where the gateway's own ICMP errors go
}

func (c GatewayConfig) exposure() exposure {
	if len(c.Exposed) == 0 {
		return exposure{}
	}
	var addresses, hosts []netip.Prefix
	var dnat []nft.Rule // one each: the hosts' addresses have nothing in common
	for _, e := range c.Exposed {
		addresses, hosts = append(addresses, host(e.Address)), append(hosts, host(e.Host))
		dnat = append(dnat, nft.Rule{nft.IIf(Tunnel), nft.DAddr(host(e.Address)), nft.DNAT(e.Host)})
	}
	flow, reply, related := nft.CTMark(toHost), nft.CTDirection(nft.Reply), nft.CTState(nft.Related)
	fromPeer, toExposed := nft.SAddrIn(setReal), nft.DAddrIn(setExposed)
	return exposure{
		links: []Link{{Name: podLink, Kind: KindDevice, Forwarding: true, MarkedPath: true}},
		// Without a mark, by incoming link or by address, both would be looked for among this cluster's pods. That one
		// mark serves both ways makes each the other's way back, as a strict reverse path filter wants it.
		rules: []Rule{
			{Priority: priorityExposed, Mark: markExposed, IIf: Tunnel, Table: mainTable},
			{Priority: priorityExposed, Mark: markExposed, IIf: podLink, Table: ToPeer},
		},
		sets: []nft.Set{{Name: setExposed, Elements: ranges(addresses)}, {Name: setHosts, Elements: ranges(hosts)}},
		fromTunnel: []nft.Rule{
			{fromPeer, toExposed, nft.CTState(nft.New), nft.SetCTMark(toHost), nft.SetMark(markExposed), nft.Accept()},
			{fromPeer, toExposed, flow, nft.SetMark(markExposed), nft.Accept()},
		},
		answers: []nft.Rule{{nft.IIf(podLink), flow, reply, nft.SetMark(markExposed)}},
		forward: []nft.Rule{
			{nft.IIf(Tunnel), nft.OIf(podLink), flow, nft.DAddrIn(setHosts), nft.Accept()},
			{nft.IIf(podLink), nft.OIf(Tunnel), flow, reply, nft.SAddrIn(setHosts), nft.Accept()},
			{nft.IIf(podLink), nft.OIf(Tunnel), flow, reply, related, nft.Accept()}, // ICMP errors of routers
		},
		dnat:  dnat,
		snat:  []nft.Rule{{nft.OIf(podLink), flow, nft.SNAT(c.Pod)}},
		guard: []nft.Rule{{nft.OIf(podLink), flow, nft.SAddrNot(host(c.Pod)), nft.Counter(), nft.Drop()}},
		errors: []nft.Rule{
			{related, flow, reply, nft.SetMark(markToPeer), nft.Accept()},
			{related, flow, nft.CTDirection(nft.Original), nft.Accept()},
		},
	}
}
