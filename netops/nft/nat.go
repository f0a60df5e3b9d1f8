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
		&expr.Immediate{Register: matchReg, Data: a.AsSlice()},
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
		&expr.Immediate{Register: matchReg, Data: binary.BigEndian.AppendUint16(nil, port)},
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

// SNATPrefix translates the source 1:1 into the prefix: host bits are kept. The rule has to match sources of
// a prefix of the same length.
func SNATPrefix(p netip.Prefix) Expr { return natPrefix("snat", expr.NATTypeSourceNAT, p) }

// DNATPrefix translates the destination 1:1 into the prefix: host bits are kept. The rule has to match
// destinations of a prefix of the same length.
func DNATPrefix(p netip.Prefix) Expr { return natPrefix("dnat", expr.NATTypeDestNAT, p) }

// natPrefix has the kernel map the address into the range that begins in one register and ends in the other;
// it takes the network mask from the bits in which the ends agree (nf_nat_netmap in nft_nat.c, since 5.8).
func natPrefix(word string, kind expr.NATType, p netip.Prefix) Expr {
	text := fmt.Sprintf("%s prefix to %s", word, p.Masked())
	if err := checkPrefix(p); err != nil {
		return Expr{err: fmt.Errorf("%s: %w", text, err)}
	}
	return Expr{text: text, code: []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint32(nil, first(p))},
		&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint32(nil, last(p))},
		&expr.NAT{
			Type: kind, Family: unix.NFPROTO_IPV4,
			RegAddrMin: unix.NFT_REG_1, RegAddrMax: unix.NFT_REG_2, Prefix: true,
		},
	}}
}
