package netops

import (
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/nft"
)

// MarkCarried marks a tunnel's own packets that a client's gateway carries by WebSocket: they are delivered to its
// process instead of the network, with unchanged addresses.
const MarkCarried = 0x4c05

// WebSocketPort is the TCP port on which a gateway accepts WebSocket connections of the peer's gateways.
const WebSocketPort = 51880

// Limits per second, and as a burst, of new connections to WebSocketPort: of each address, which may be that of a node
// or an ingress controller for all clients; and of all addresses. A client opens one for each tunnel, and at most five
// per second while it has none. Each costs a TLS handshake, 0.2 ms, before the client can prove that it is one.
const (
	connectionsOfSender      = 20
	connectionsOfSenderBurst = 100
	connectionsOfAll         = 200
)

// carried returns the path of packets with MarkCarried. If a part of it is missing, they leave as those of any tunnel,
// encrypted.
//
// The route has a source address, because that of a local route is the destination otherwise
// (ip_route_output_key_hash_rcu in net/ipv4/route.c).
func (c GatewayConfig) carried() ([]Rule, []Route) {
	if !c.Carries {
		return nil, nil
	}
	everything := netip.PrefixFrom(c.Pod, 0).Masked()
	return []Rule{{Priority: priorityCarried, Mark: MarkCarried, Table: Carried}},
		[]Route{{Table: Carried, Dst: everything, Type: Local, Link: Loopback, Source: c.Pod}}
}

// listener is the part of a gateway's firewall for WebSocket connections. The zero value: there are none.
type listener struct {
	sets   []nft.Set
	chains []nft.Chain
	input  []nft.Rule
}

// webSocket accepts connections by the pod's own link. Packets of established connections are accepted before.
func (c GatewayConfig) webSocket() listener {
	if c.WebSocketPort == 0 {
		return listener{}
	}
	const set, chain = "connecting", "websocket"
	return listener{
		// If forged senders fill the set, they also exhaust the limit of all.
		sets: []nft.Set{{Name: set, Senders: strangersMost, Timeout: time.Minute}},
		chains: []nft.Chain{{Name: chain, Rules: []nft.Rule{
			{nft.Meter(set, connectionsOfSender, connectionsOfSenderBurst), nft.Limit(connectionsOfAll, connectionsOfAll), nft.Accept()},
			refusal,
		}}},
		input: []nft.Rule{{nft.IIf(PodLink), nft.TCPDPort(c.WebSocketPort), nft.Goto(chain)}},
	}
}
