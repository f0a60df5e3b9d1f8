package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"

	"liqonet.io/liqonet/internal/cidr"
)

// Offsets and lengths, in bytes, in the IPv4 header: RFC 791.
const (
	checksumOffset = 10
	saddrOffset    = 12
	daddrOffset    = 16
	addressLen     = 4
)

// header is an IPv4 header in a packet.
type header struct {
	base     expr.PayloadBase
	offset   uint32 // bytes from the base
	proto    Proto  // of packets that have it; 0: all
	checksum uint32 // flags of other checksums that depend on it
	number   func(uint32) string
}

// network is the packet's own header. Checksums of TCP and UDP include its addresses.
var network = header{
	base: expr.PayloadBaseNetworkHeader, checksum: l4PseudoHeader,
	number: func(n uint32) string { return cidr.Address(n).String() },
}

// l4PseudoHeader is NFT_PAYLOAD_L4CSUM_PSEUDOHDR of linux/netfilter/nf_tables.h.
const l4PseudoHeader = 1

func (h header) load(offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: matchReg, Base: h.base, Offset: h.offset + offset, Len: length}
}

// address is one of the two addresses in a header, with its name in nft text.
type address struct {
	header
	at   uint32 // offset in the header
	word string
}

// The addresses of the packet itself, and of the packet that an ICMP error quotes.
var (
	source            = address{network, saddrOffset, "ip saddr"}
	destination       = address{network, daddrOffset, "ip daddr"}
	quotedSource      = address{quotation, saddrOffset, "@th,160,32"}
	quotedDestination = address{quotation, daddrOffset, "@th,192,32"}
)

func (a address) read() expr.Any { return a.load(a.at, addressLen) }

// write writes an address to the header and updates the header's checksum.
func (a address) write() expr.Any {
	return &expr.Payload{
		OperationType: expr.PayloadWrite, SourceRegister: matchReg,
		Base: a.base, Offset: a.offset + a.at, Len: addressLen,
		CsumType: expr.CsumTypeInet, CsumOffset: a.offset + checksumOffset, CsumFlags: a.checksum,
	}
}

// match compares the address's network bits. Whole bytes are loaded and compared directly, as nft(8) does; other
// lengths need a mask.
func (a address) match(op expr.CmpOp, p netip.Prefix) Expr {
	if err := checkPrefix(p); err != nil {
		return Expr{err: fmt.Errorf("%s %s%s: %w", a.word, opText(op), p, err)}
	}
	whole, bits := uint32(p.Bits()), p.Masked().Addr().AsSlice()
	e := Expr{text: fmt.Sprintf("%s %s%s", a.word, opText(op), prefixText(p)), proto: a.proto}
	if whole%8 == 0 && whole > 0 {
		e.code = compare(a.load(a.at, whole/8), op, bits[:whole/8])
	} else {
		e.code = compareBits(a.read(), binary.BigEndian.AppendUint32(nil, netmask(p)), op, bits)
	}
	switch {
	case a.proto == 0:
	case whole%8 == 0 && whole > 0:
		e.text = fmt.Sprintf("@th,%d,%d 0x%x", (a.offset+a.at)*8, whole, first(p)>>(32-whole))
	default:
		e.text = fmt.Sprintf("%s & 0x%x == 0x%x", a.word, netmask(p), first(p))
	}
	return e
}

// in matches addresses in a named set.
func (a address) in(set string) Expr {
	return Expr{text: fmt.Sprintf("%s @%s", a.word, set), set: set, code: []expr.Any{
		a.read(),
		&expr.Lookup{SourceRegister: matchReg, SetName: set},
	}}
}

// setPrefix replaces the address's network bits.
func (a address) setPrefix(p netip.Prefix) Expr {
	if err := checkPrefix(p); err != nil {
		return Expr{err: fmt.Errorf("%s set %s: %w", a.word, p, err)}
	}
	host, bits := ^netmask(p), first(p)
	return Expr{
		// nft(8) prints the pair (mask, xor) of the kernel's bitwise as "& (mask|xor) | xor".
		text:  fmt.Sprintf("%s set %s & %s | %s", a.word, a.word, a.number(host|bits), a.number(bits)),
		proto: a.proto,
		code: []expr.Any{
			a.read(),
			bitwise(binary.BigEndian.AppendUint32(nil, host), binary.BigEndian.AppendUint32(nil, bits)),
			a.write(),
		},
	}
}
