package records

import "fmt"

// TunnelID names the tunnel between two gateways of a peering, by their numbers.
type TunnelID struct{ Server, Client int }

// TunnelOf is the tunnel between a gateway of a side and one of its peer.
func TunnelOf(role Role, own, peer int) TunnelID {
	if role == Server {
		return TunnelID{own, peer}
	}
	return TunnelID{peer, own}
}

// Index is 0 for the tunnel of the first two gateways, and less than the square of MaxGateways. Addresses and ports of
// tunnels count up by it.
func (t TunnelID) Index() int { return MaxGateways*(t.Server-1) + t.Client - 1 }

// PortName names the tunnel's port of the Service, and of the pod of the server's gateway: no other pod has that name.
// The first one's is older than the others: scaling leaves its pod alone.
func (t TunnelID) PortName() string {
	if t.Index() == 0 {
		return "wireguard"
	}
	return fmt.Sprintf("tunnel-%d-%d", t.Server, t.Client)
}
