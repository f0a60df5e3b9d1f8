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
	return Expr{text: word + " to " + a.String(), code: []expr.Any{value(a.AsSlice()), toAddress(kind)}}.
		unless(!a.Is4(), "not an IPv4 address")
}

// toAddress translates to the address in the register. The end of the range is set as well: otherwise the kernel sets
// it (nft_nat_init of nft_nat.c) and its dump differs.
func toAddress(kind expr.NATType) expr.Any {
	return &expr.NAT{Type: kind, Family: unix.NFPROTO_IPV4, RegAddrMin: matchReg, RegAddrMax: matchReg}
}

// DNATPort translates the destination's port and keeps its address. The rule must match TCP or UDP.
func DNATPort(port uint16) Expr {
	return Expr{text: fmt.Sprintf("dnat to :%d", port), code: []expr.Any{
		value(binary.BigEndian.AppendUint16(nil, port)),
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegProtoMin: matchReg, RegProtoMax: matchReg},
	}}.unless(port == 0, "not a port")
}

// SNATKeep binds the source to itself. Unlike Accept, which ends only its own chain, a binding prevents later nat
// chains from translating the source.
func SNATKeep() Expr {
	return Expr{text: "snat to ip saddr", code: []expr.Any{source.read(), toAddress(expr.NATTypeSourceNAT)}}
}
