package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
)

// Statements that rewrite addresses in this packet alone: no connection is remembered. Checksums stay right.

// SetSAddrPrefix rewrites the source's network bits to those of the prefix, host bits kept.
func SetSAddrPrefix(p netip.Prefix) Expr { return setPrefix("ip saddr", network, saddrOffset, p) }

// SetDAddrPrefix rewrites the destination's network bits to those of the prefix, host bits kept.
func SetDAddrPrefix(p netip.Prefix) Expr { return setPrefix("ip daddr", network, daddrOffset, p) }

// setPrefix rewrites the network bits of an address of a header.
func setPrefix(word string, h header, offset uint32, p netip.Prefix) Expr {
	if err := checkPrefix(p); err != nil {
		return Expr{err: fmt.Errorf("%s set %s: %w", word, p, err)}
	}
	host, bits := ^netmask(p), first(p)
	return Expr{
		// nft(8) writes the pair (mask, xor) of the kernel's bitwise as "& (mask|xor) | xor".
		text:  fmt.Sprintf("%s set %s & %s | %s", word, word, h.number(host|bits), h.number(bits)),
		proto: h.proto,
		code: []expr.Any{
			h.load(offset, addressLen),
			bitwise(binary.BigEndian.AppendUint32(nil, host), binary.BigEndian.AppendUint32(nil, bits)),
			h.write(offset),
		},
	}
}
