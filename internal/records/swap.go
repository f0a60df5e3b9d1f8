package records

import (
	"encoding/binary"
	"net/netip"
)

// Swap gives an address the network bits of another range and keeps its host bits.
func Swap(a netip.Addr, into netip.Prefix) netip.Addr {
	host, network := a.As4(), into.Addr().As4()
	mask := ^uint32(0) >> into.Bits()
	var out [4]byte
	binary.BigEndian.PutUint32(out[:], binary.BigEndian.Uint32(network[:])&^mask|binary.BigEndian.Uint32(host[:])&mask)
	return netip.AddrFrom4(out)
}
