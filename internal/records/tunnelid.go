package records

import (
	"fmt"
	"math"
)

// TunnelID identifies the tunnel between two gateways of a peering, by their numbers.
type TunnelID struct{ Server, Client int }

// TunnelOf returns the ID of the tunnel between a gateway of a cluster with that role and one of its peer.
func TunnelOf(role Role, own, peer int) TunnelID {
	if role == Server {
		return TunnelID{own, peer}
	}
	return TunnelID{peer, own}
}

// Index is 0 for the tunnel between the first two gateways, and less than the square of MaxGateways. Addresses and
// ports of tunnels are numbered by it.
func (t TunnelID) Index() int { return MaxGateways*(t.Server-1) + t.Client - 1 }

// PortName is the name of the tunnel's port in the Service and in the pod of the server's gateway; no other pod has a
// port of that name. The name of the first port predates the others: it is kept so that scaling does not restart its
// pod.
func (t TunnelID) PortName() string {
	if t.Index() == 0 {
		return "wireguard"
	}
	return fmt.Sprintf("tunnel-%d-%d", t.Server, t.Client)
}

// Port returns the port of the tunnel, given that of the first one; an error if it would exceed the range of ports.
func (t TunnelID) Port(first uint16) (uint16, error) {
	p := int(first) + t.Index()
	if p > math.MaxUint16 {
		return 0, fmt.Errorf("port %d of the tunnel of gateways %d and %d: there is none above %d: begin below %d", p, t.Server, t.Client, math.MaxUint16, first)
	}
	return uint16(p), nil
}
