package nft

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
)

// ICMP errors quote the header of the packet that they are about (RFC 792). What is said of it here should come after
// ICMPType: other ICMP packets have something else in that place.
//
// The quoted header has a checksum of its own. It is mended with each change, so that all words of the quotation have
// the same sum as before and the ICMP checksum, which covers them, needs no change. nft(8) can print these
// expressions, but not say them: it knows no checksum of what it has no name for.

// quotation is the header that an ICMP error quotes.
var quotation = header{
	base: expr.PayloadBaseTransportHeader, offset: icmpHeaderLen, proto: ICMP,
	number: func(n uint32) string { return fmt.Sprintf("0x%x", n) },
}

// icmpHeaderLen is the length of an ICMP header in bytes.
const icmpHeaderLen = 8

// QuotedSAddr matches ICMP errors about packets with a source in the prefix.
func QuotedSAddr(p netip.Prefix) Expr { return quotedSource.match(expr.CmpOpEq, p) }

// QuotedDAddr matches ICMP errors about packets with a destination in the prefix.
func QuotedDAddr(p netip.Prefix) Expr { return quotedDestination.match(expr.CmpOpEq, p) }

// SetQuotedSAddrPrefix rewrites the quoted source's network bits to those of the prefix, host bits kept.
func SetQuotedSAddrPrefix(p netip.Prefix) Expr { return quotedSource.setPrefix(p) }

// SetQuotedDAddrPrefix rewrites the quoted destination's network bits to those of the prefix, host bits kept.
func SetQuotedDAddrPrefix(p netip.Prefix) Expr { return quotedDestination.setPrefix(p) }

// SetSAddrQuoted makes an ICMP error come from where the packet that it is about was going.
func SetSAddrQuoted() Expr {
	text := source.word + " set " + quotedDestination.word
	return Expr{text: text, proto: ICMP, code: []expr.Any{quotedDestination.read(), source.write()}}
}
