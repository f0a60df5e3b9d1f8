package netops

import (
	"slices"
	"time"

	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/nft"
)

// Limits per second, and as a burst, of packets to listen ports from senders to which the tunnel has sent no packet in
// the last minute: of addresses with which it had a handshake; of each other address; and of all other addresses. A
// handshake needs one packet. The burst is for a peer whose address changes while it sends.
const (
	peerRate       = 1000
	strangerRate   = 100
	strangerBurst  = 10_000
	strangersRate  = 1000
	strangersBurst = 20_000
)

// eachListenPort returns a rule for each tunnel that has a listen port.
func (c GatewayConfig) eachListenPort(rule func(port uint16) nft.Rule) (rules []nft.Rule) {
	for _, t := range c.Tunnels {
		rules = append(rules, onlyIf(t.ListenPort != 0, rule(t.ListenPort))...)
	}
	return rules
}

// listens reports whether any remote end sends handshakes.
func (c GatewayConfig) listens() bool {
	return slices.ContainsFunc(c.Tunnels, func(t GatewayTunnel) bool { return t.ListenPort != 0 })
}

// First bytes of WireGuard messages: both handshake messages, and data. The fourth kind is the cookie reply, which is
// sent to any address.
const (
	Initiation = "\x01\x00\x00\x00"
	response   = "\x02\x00\x00\x00"
	data       = "\x04\x00\x00\x00"
)

// strangers returns the chains for WireGuard messages at listen ports. WireGuard sends the messages of chain sent only
// to holders of the peer's key: packets from these addresses are accepted without a limit, others at a rate that lets a
// handshake pass. kube-proxy may masquerade all senders behind one node address; ports distinguish them. A client that
// renews its tunnel has a new port.
func (c GatewayConfig) strangers() []nft.Chain {
	switch {
	case !c.listens():
		return nil
	case c.Plain != nil:
		return c.plainSenders()
	}
	return []nft.Chain{
		{Name: "sent", Rules: []nft.Rule{
			{nft.UDPBegins(data), nft.UpdateDFlow(setKnown), nft.Accept()},
			{nft.UDPBegins(response), nft.UpdateDAddr(setPeer), nft.UpdateDFlow(setKnown)},
			{nft.UDPBegins(Initiation), nft.UpdateDAddr(setPeer), nft.UpdateDFlow(setKnown)},
		}},
		{Name: "listen", Rules: []nft.Rule{
			{nft.FlowIn(setKnown), nft.Accept()},
			{nft.SAddrIn(setPeer), nft.Limit(peerRate, peerRate), nft.Accept()},
			{nft.MeterFlow(setStrangers, strangerRate, strangerBurst), nft.Limit(strangersRate, strangersBurst), nft.Accept()},
			refusal,
		}},
	}
}

// senders returns the sets of the chains for listen ports.
func (c GatewayConfig) senders() []nft.Set {
	known := nft.Set{Name: setKnown, Senders: sendersOfPeer, Ports: true, Timeout: time.Minute}
	switch {
	case !c.listens():
		return nil
	case c.Plain != nil:
		return append(c.plainSets(), known)
	}
	return []nft.Set{
		known,
		{Name: setPeer, Senders: sendersOfPeer, Timeout: 5 * time.Minute},
		{Name: setStrangers, Senders: strangersMost, Ports: true, Timeout: time.Minute},
	}
}

// listenChain returns the chain for packets to a listen port.
func (c GatewayConfig) listenChain(port uint16) string {
	if c.Plain != nil && len(c.Plain.Sources) > 0 {
		return Arrived(port)
	}
	return "listen"
}

// probes lets the peer measure its path to this gateway by echoes to the tunnel's port.
func (c GatewayConfig) probes() []nft.Chain {
	rules := append(c.eachListenPort(func(port uint16) nft.Rule {
		return nft.Rule{
			nft.IIfGroupNot(GroupOverlay), nft.IIfGroupNot(GroupTunnel), nft.UDPDPort(port), nft.UDPBegins(echo.Magic), nft.DNATPort(EchoPort),
		}
	}), c.exposure().dnat...)
	if len(rules) == 0 {
		return nil
	}
	return []nft.Chain{{Name: "destination", Hook: &nft.Hook{Type: "nat", Point: "prerouting", Priority: priorityDNAT}, Rules: rules}}
}
