package nft

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables/expr"

	"liqonet.io/liqonet/internal/cidr"
)

// header is an IPv4 header in a packet.
type header struct {
	base     expr.PayloadBase
	offset   uint32 // bytes from the base
	proto    Proto  // of packets that have it; 0: all
	checksum uint32 // flags: which others depend on it
	number   func(uint32) string
}

// network is the packet's own header. Checksums of TCP and UDP cover its addresses.
var network = header{
	base: expr.PayloadBaseNetworkHeader, checksum: l4PseudoHeader,
	number: func(n uint32) string { return cidr.Address(n).String() },
}

// l4PseudoHeader is NFT_PAYLOAD_L4CSUM_PSEUDOHDR of linux/netfilter/nf_tables.h.
const l4PseudoHeader = 1

func (h header) load(offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: matchReg, Base: h.base, Offset: h.offset + offset, Len: length}
}

// compare compares the network bits of the address at the offset. Whole bytes are loaded and compared as they are, as
// nft(8) does it, other lengths need a mask.
func (h header) compare(offset uint32, op expr.CmpOp, p netip.Prefix) []expr.Any {
	length, bits := uint32(p.Bits()+7)/8, p.Masked().Addr().AsSlice()
	if p.Bits()%8 == 0 && length > 0 {
		return compare(h.load(offset, length), op, bits[:length])
	}
	return compareBits(h.load(offset, addressLen), binary.BigEndian.AppendUint32(nil, netmask(p)), op, bits)
}

// write puts an address into the header and mends the header's checksum.
func (h header) write(offset uint32) expr.Any {
	return &expr.Payload{
		OperationType: expr.PayloadWrite, SourceRegister: matchReg,
		Base: h.base, Offset: h.offset + offset, Len: addressLen,
		CsumType: expr.CsumTypeInet, CsumOffset: h.offset + checksumOffset, CsumFlags: h.checksum,
	}
}
