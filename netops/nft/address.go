package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables/expr"

	"liqonet.io/liqonet/internal/cidr"
)

// SAddr matches source addresses in the prefix.
func SAddr(p netip.Prefix) Expr { return source.match(expr.CmpOpEq, p) }

// DAddr matches destination addresses in the prefix.
func DAddr(p netip.Prefix) Expr { return destination.match(expr.CmpOpEq, p) }

// SAddrNot matches source addresses outside the prefix.
func SAddrNot(p netip.Prefix) Expr { return source.match(expr.CmpOpNeq, p) }

// SAddrIn matches source addresses in the named set.
func SAddrIn(set string) Expr { return source.in(set) }

// DAddrIn matches destination addresses in the named set.
func DAddrIn(set string) Expr { return destination.in(set) }

// Fragment matches fragments. After connection tracking has reassembled packets (priority -400) there are none.
func Fragment() Expr {
	const offset, moreAndOffset = 6, 0x3fff // of the header; the whole word except "don't fragment"
	return Expr{text: fmt.Sprintf("ip frag-off & %d != 0", moreAndOffset), code: anyOf(network.load(offset, 2), binary.BigEndian.AppendUint16(nil, moreAndOffset))}
}

// Options matches packets whose IP header has options.
func Options() Expr {
	const length, plain = 0x0f, 5 // in words of four bytes
	return Expr{text: fmt.Sprintf("ip hdrlength != %d", plain), code: compareBits(network.load(0, 1), []byte{length}, expr.CmpOpNeq, []byte{plain})}
}

// DAddrNot matches destination addresses outside the prefix.
func DAddrNot(p netip.Prefix) Expr { return destination.match(expr.CmpOpNeq, p) }

// The following statements rewrite addresses per packet, without connection tracking, and update checksums.

// SetSAddrPrefix replaces the source's network bits by those of the prefix and keeps the host bits.
func SetSAddrPrefix(p netip.Prefix) Expr { return source.setPrefix(p) }

// SetDAddrPrefix replaces the destination's network bits by those of the prefix and keeps the host bits.
func SetDAddrPrefix(p netip.Prefix) Expr { return destination.setPrefix(p) }

// checkPrefix rejects invalid and IPv6 prefixes. Host bits are allowed.
func checkPrefix(p netip.Prefix) error {
	if !p.IsValid() || !p.Addr().Is4() {
		return fmt.Errorf("%q is not an IPv4 prefix", p)
	}
	return nil
}

// prefixText returns a prefix as nft(8) prints it: without host bits, a single address without a length.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

// prefixTexts returns prefixes as nft(8) prints them, with a separator.
func prefixTexts(prefixes []netip.Prefix, between string) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = prefixText(p)
	}
	return strings.Join(texts, between)
}

// netmask returns the mask of the prefix's network bits. (In Go a shift by 32 leaves 0.)
func netmask(p netip.Prefix) uint32 { return ^uint32(0) << (32 - p.Bits()) }

// first and last return the first and last address of the prefix.
func first(p netip.Prefix) uint32 { return cidr.Number(p.Addr()) & netmask(p) }
func last(p netip.Prefix) uint32  { return first(p) | ^netmask(p) }
