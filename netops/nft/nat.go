package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// SNAT translates the source to the address.
func SNAT(a netip.Addr) Expr { return natAddress("snat", expr.NATTypeSourceNAT, a) }

// DNAT translates the destination to the address.
func DNAT(a netip.Addr) Expr { return natAddress("dnat", expr.NATTypeDestNAT, a) }

func natAddress(word string, kind expr.NATType, a netip.Addr) Expr {
	text := word + " to " + a.String()
	if !a.Is4() {
		return Expr{err: fmt.Errorf("%s: not an IPv4 address", text)}
	}
	return Expr{text: text, code: []expr.Any{
		value(a.AsSlice()),
		&expr.NAT{Type: kind, Family: unix.NFPROTO_IPV4, RegAddrMin: matchReg},
	}}
}

// DNATPort translates the destination's port and leaves its address. The rule has to match TCP or UDP.
func DNATPort(port uint16) Expr {
	text := fmt.Sprintf("dnat to :%d", port)
	if port == 0 {
		return Expr{err: fmt.Errorf("%s: not a port", text)}
	}
	return Expr{text: text, code: []expr.Any{
		value(binary.BigEndian.AppendUint16(nil, port)),
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegProtoMin: matchReg},
	}}
}

// SNATKeep binds the source to itself. Unlike Accept, which ends only its own chain, a binding keeps the nat
// chains that come later from translating the source.
func SNATKeep() Expr {
	return Expr{text: "snat to ip saddr", code: []expr.Any{
		network.load(saddrOffset, addressLen),
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: matchReg},
	}}
}
