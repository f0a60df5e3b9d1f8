package records

import (
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// MaxPeerings returns how many peerings a cluster with that internal CIDR can have: their highest number.
func MaxPeerings(internal netip.Prefix) int { return 1<<(31-internal.Bits())/MaxGateways - 1 }

// MaxNodes returns how many nodes a cluster with that internal CIDR can have: their highest number.
func MaxNodes(internal netip.Prefix) int { return 1<<(31-internal.Bits()) - 2 }

// NodeAddress returns the internal address of the node with that number: in the lower half of the internal CIDR, and
// beyond it for a number above MaxNodes.
func NodeAddress(internal netip.Prefix, number int) netip.Addr {
	return cidr.Address(cidr.Number(internal.Masked().Addr()) + uint32(number))
}

// GatewayAddresses returns the internal addresses of the gateways of the peering with that number: at its place in the
// upper half of the internal CIDR. Nodes have the lower half.
func GatewayAddresses(internal netip.Prefix, number int) netip.Prefix {
	half := cidr.Number(internal.Masked().Addr()) + 1<<(31-internal.Bits())
	return netip.PrefixFrom(cidr.Address(half+uint32(MaxGateways*number)), 29)
}

// NumberOf returns the number of the peering, one of whose gateways has an internal address. It is below 1 or above
// MaxPeerings for addresses that no gateway has.
func NumberOf(internal netip.Prefix, address netip.Addr) int {
	half := 1 << (31 - internal.Bits())
	return (int(cidr.Offset(internal, address)) - half) / MaxGateways
}

// OverlayID returns the virtual network identifier (24 bits, not 0) of packets between nodes and a gateway, counted
// from 1. It is unique in the cluster.
func (p Peering) OverlayID(gateway int) uint32 { return uint32(MaxGateways*p.Number + gateway - 1) }

// GatewayAddress returns the internal address of a gateway, counted from 1: that of its end of the overlay.
func (p Peering) GatewayAddress(internal netip.Prefix, gateway int) netip.Addr {
	return cidr.Address(cidr.Number(GatewayAddresses(internal, p.Number).Addr()) + uint32(gateway-1))
}
