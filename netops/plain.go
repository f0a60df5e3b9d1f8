package netops

import (
	"net/netip"
	"strconv"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// PlainPort is the first of the ports on which a client's tunnels without encryption listen, and from which they send.
// They are outside the range from which the kernel chooses ports.
const PlainPort = 61100

// Plain has what the packet filter checks of packets in tunnels without encryption, before they are decapsulated.
type Plain struct {
	VNI uint32
	// Sources are the networks of the peer's nodes, at a server. A client has none: it accepts packets from where it
	// sends to.
	Sources []netip.Prefix
}

// vxlanHeader are the first bytes of VXLAN packets with a VNI (RFC 7348, section 5).
const vxlanHeader = "\x08\x00\x00\x00"

// setSources has the networks from which a server accepts packets without encryption.
const setSources = "sources"

// setGuessing has the addresses that send from ports which a server does not know yet. Each may do so guessRate times
// per second, and as a burst: the VNI is found from one address after a day and more, but from all 254 of a /24, by a
// neighbour that forges them, after some minutes. Nodes masquerade their pods, so a pod that floods a server delays a
// new flow of a gateway on its node: of both, a hundred packets a second are checked.
const (
	setGuessing = "guessing"
	guessRate   = 100
)

// ArrivedTime is the time after its last packet for which a sender stays in Arrived.
const ArrivedTime = time.Minute

// Arrived returns the name of the set of senders whose packets a server accepted at a listen port, without encryption,
// within ArrivedTime.
func Arrived(listenPort uint16) string { return "arrived-" + strconv.Itoa(int(listenPort)) }

// plainSets returns the sets of plainSenders.
func (c GatewayConfig) plainSets() []nft.Set {
	if len(c.Plain.Sources) == 0 {
		return nil
	}
	sets := []nft.Set{nft.NewSet(setSources, c.Plain.Sources...), {Name: setGuessing, Senders: strangersMost, Timeout: time.Minute}}
	for _, t := range c.Tunnels {
		sets = append(sets, nft.Set{Name: Arrived(t.ListenPort), Senders: sendersOfPeer, Ports: true, Timeout: ArrivedTime})
	}
	return sets
}

// plainSenders returns the chains for packets of tunnels without encryption: chain sent, as for WireGuard, and those
// that accept packets with the peering's VNI: a client from where it sends to, a server from the peer's nodes.
func (c GatewayConfig) plainSenders() []nft.Chain {
	chains := []nft.Chain{{Name: "sent", Rules: []nft.Rule{{nft.UDPBegins(vxlanHeader), nft.UpdateDFlow(setKnown), nft.Accept()}}}}
	tunnel := nft.OverlayID(c.Plain.VNI)
	if len(c.Plain.Sources) == 0 {
		return append(chains, nft.Chain{Name: "listen", Rules: []nft.Rule{{tunnel, nft.FlowIn(setKnown), nft.Accept()}, refusal}})
	}
	for _, t := range c.Tunnels {
		set := Arrived(t.ListenPort)
		chains = append(chains, nft.Chain{Name: set, Rules: []nft.Rule{
			{tunnel, nft.SAddrIn(setSources), nft.FlowIn(set), nft.UpdateSFlow(set), nft.Accept()},
			{nft.SAddrIn(setSources), nft.Meter(setGuessing, guessRate, guessRate), tunnel, nft.UpdateSFlow(set), nft.Accept()},
			refusal,
		}})
	}
	return chains
}

// plainSources drops what WireGuard's AllowedIPs exclude, before fragments are reassembled: a fragment with the source
// of a pod of this cluster, or of a node, would become a part of its datagrams.
func (c GatewayConfig) plainSources() (rules []nft.Rule) {
	if c.Plain == nil {
		return nil
	}
	for _, m := range c.Peer {
		rules = append(rules, nft.Rule{nft.IIfGroup(GroupTunnel), nft.SAddr(m.Real), nft.Accept()})
	}
	for _, t := range c.Tunnels {
		rules = append(rules, nft.Rule{nft.IIf(t.Link), nft.SAddr(cidr.Single(t.Peer)), nft.Accept()})
	}
	return append(rules, nft.Rule{nft.IIfGroup(GroupTunnel), nft.Counter(), nft.Drop()})
}
