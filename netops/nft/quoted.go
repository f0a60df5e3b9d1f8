package nft

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
)

// ICMP errors quote the header of the packet that caused them (RFC 792). These expressions must follow ICMPType: other
// ICMP packets have other content at that offset.
//
// The quoted header has its own checksum, which is updated with each change. The sum of all words of the quotation is
// therefore unchanged, and with it the ICMP checksum. nft(8) can print these expressions, but not parse them: it cannot
// express checksum updates of unnamed fields.

// quotation is the header that an ICMP error quotes.
var quotation = header{
	base: expr.PayloadBaseTransportHeader, offset: icmpHeaderLen, proto: ICMP,
	number: func(n uint32) string { return fmt.Sprintf("0x%x", n) },
}

// icmpHeaderLen is the length of an ICMP header in bytes.
const icmpHeaderLen = 8

// QuotedSAddr matches ICMP errors for packets with a source in the prefix.
func QuotedSAddr(p netip.Prefix) Expr { return quotedSource.match(expr.CmpOpEq, p) }

// QuotedDAddr matches ICMP errors for packets with a destination in the prefix.
func QuotedDAddr(p netip.Prefix) Expr { return quotedDestination.match(expr.CmpOpEq, p) }

// SetQuotedSAddrPrefix replaces the quoted source's network bits by those of the prefix and keeps the host bits.
func SetQuotedSAddrPrefix(p netip.Prefix) Expr { return quotedSource.setPrefix(p) }

// SetQuotedDAddrPrefix replaces the quoted destination's network bits by those of the prefix and keeps the host bits.
func SetQuotedDAddrPrefix(p netip.Prefix) Expr { return quotedDestination.setPrefix(p) }

// SetSAddrQuoted sets the source of an ICMP error to the destination of the quoted packet.
func SetSAddrQuoted() Expr {
	text := source.word + " set " + quotedDestination.word
	return Expr{text: text, proto: ICMP, code: []expr.Any{quotedDestination.read(), source.write()}}
}
