package nft

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// Proto is an IP protocol number.
type Proto uint8

// The protocols that rules can match.
const (
	ICMP Proto = unix.IPPROTO_ICMP
	TCP  Proto = unix.IPPROTO_TCP
	UDP  Proto = unix.IPPROTO_UDP
)

// String returns the protocol's name in nft, or its number.
func (p Proto) String() string {
	return cmp.Or(map[Proto]string{ICMP: "icmp", TCP: "tcp", UDP: "udp"}[p], fmt.Sprint(uint8(p)))
}

// link is one of the interfaces of a packet: the word for its attributes in nft text, and their keys.
type link struct {
	word        string
	name, group expr.MetaKey
}

var (
	arrival   = link{"iif", expr.MetaKeyIIFNAME, expr.MetaKeyIIFGROUP}
	departure = link{"oif", expr.MetaKeyOIFNAME, expr.MetaKeyOIFGROUP}
)

// IIf matches packets that came in through the named interface. Comparing names costs more per packet than comparing
// groups; see IIfGroup.
func IIf(name string) Expr { return arrival.named(expr.CmpOpEq, name, "") }

// OIf matches packets that leave through the named interface.
func OIf(name string) Expr { return departure.named(expr.CmpOpEq, name, "") }

// IIfNot matches packets that came in through any interface but the named one.
func IIfNot(name string) Expr { return arrival.named(expr.CmpOpNeq, name, "") }

// IIfPrefix matches packets that came in through an interface with that name prefix.
func IIfPrefix(prefix string) Expr { return arrival.named(expr.CmpOpEq, prefix, anyEnd) }

// OIfPrefix matches packets that leave through an interface with that name prefix.
func OIfPrefix(prefix string) Expr { return departure.named(expr.CmpOpEq, prefix, anyEnd) }

// anyEnd is the wildcard at the end of a name in nft text.
const anyEnd = "*"

// named compares an interface's name or, with anyEnd, its prefix. Names that the kernel rejects, or that nft(8) prints
// differently, are invalid.
func (l link) named(op expr.CmpOp, name, end string) Expr {
	bytes := []byte(name)
	if end != anyEnd {
		bytes = append(bytes, make([]byte, max(0, unix.IFNAMSIZ-len(name)))...)
	}
	return Expr{text: fmt.Sprintf("%sname %s%q", l.word, opText(op), name+end), code: compare(meta(l.name), op, bytes)}.
		unless(name == "" || len(name) >= unix.IFNAMSIZ || strings.ContainsAny(name, "*/\"\\ \t\n"), "not an interface name")
}

// IIfGroup matches packets that came in through an interface of the group.
func IIfGroup(group uint32) Expr { return arrival.grouped(expr.CmpOpEq, group) }

// OIfGroup matches packets that leave through an interface of the group.
func OIfGroup(group uint32) Expr { return departure.grouped(expr.CmpOpEq, group) }

// IIfGroupNot matches packets that came in through an interface outside the group.
func IIfGroupNot(group uint32) Expr { return arrival.grouped(expr.CmpOpNeq, group) }

// OIfGroupNot matches packets that leave through an interface outside the group.
func OIfGroupNot(group uint32) Expr { return departure.grouped(expr.CmpOpNeq, group) }

// grouped compares the number of an interface group. Group 0 is rejected: it has a name in nft, and contains all
// interfaces by default.
func (l link) grouped(op expr.CmpOp, group uint32) Expr {
	return Expr{text: fmt.Sprintf("%sgroup %s%d", l.word, opText(op), group), code: compare(meta(l.group), op, native(group))}.
		unless(group == 0, "every interface is of this group by default")
}

// Protocol matches the transport protocol.
func Protocol(p Proto) Expr {
	if p == 0 {
		return Expr{err: errors.New("meta l4proto 0: not a transport protocol")}
	}
	return Expr{proto: p}
}

// Offsets and lengths, in bytes, in transport headers: RFC 768, RFC 9293, RFC 792.
const (
	portLen        = 2
	sportOffset    = 0
	dportOffset    = 2
	tcpFlagsOffset = 13
	udpHeaderLen   = 8
)

// UDPDPort matches UDP packets to the port.
func UDPDPort(port uint16) Expr { return matchPort(UDP, "dport", dportOffset, port) }

// UDPSPort matches UDP packets from the port.
func UDPSPort(port uint16) Expr { return matchPort(UDP, "sport", sportOffset, port) }

// TCPDPort matches TCP packets to the port.
func TCPDPort(port uint16) Expr { return matchPort(TCP, "dport", dportOffset, port) }

// matchPort compares the source or destination port.
func matchPort(p Proto, word string, offset uint32, port uint16) Expr {
	code := compare(loadTransport(offset, portLen), expr.CmpOpEq, binary.BigEndian.AppendUint16(nil, port))
	return Expr{text: fmt.Sprintf("%s %s %d", p, word, port), proto: p, implies: true, code: code}
}

func loadTransport(offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: matchReg, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length}
}

// TCPSyn matches TCP packets with SYN and without RST: the two packets that negotiate a connection's options.
func TCPSyn() Expr {
	const syn, rst = 0x02, 0x04
	return Expr{text: "tcp flags syn / syn,rst", proto: TCP, implies: true, code: compareBits(
		loadTransport(tcpFlagsOffset, 1), []byte{syn | rst}, expr.CmpOpEq, []byte{syn},
	)}
}

// ICMPType matches ICMP packets of any of the types.
func ICMPType(types ...uint8) Expr {
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = icmpName(t)
	}
	if len(types) == 1 {
		return Expr{text: "icmp type " + names[0], proto: ICMP, implies: true, code: compare(loadTransport(0, 1), expr.CmpOpEq, types)}
	}
	return Expr{
		text: "icmp type { " + strings.Join(names, ", ") + " }", proto: ICMP, implies: true, members: types,
		code: []expr.Any{loadTransport(0, 1), &expr.Lookup{SourceRegister: matchReg}},
	}.unless(len(types) == 0, "no type given")
}

// icmpName returns the name of an ICMP type in nft(8), or its number if it has none.
func icmpName(t uint8) string {
	names := map[uint8]string{
		0: "echo-reply", 3: "destination-unreachable", 4: "source-quench", 5: "redirect", 8: "echo-request",
		9: "router-advertisement", 10: "router-solicitation", 11: "time-exceeded", 12: "parameter-problem",
		13: "timestamp-request", 14: "timestamp-reply", 15: "info-request", 16: "info-reply",
		17: "address-mask-request", 18: "address-mask-reply",
	}
	return cmp.Or(names[t], fmt.Sprint(t))
}

// OverlayID matches UDP packets with a VXLAN or Geneve payload and that VNI (24 bits). Both have the identifier in
// bytes 4 to 6 of their header (RFC 7348, RFC 8926).
func OverlayID(vni uint32) Expr {
	const offset, length = udpHeaderLen + 4, 3
	id := []byte{byte(vni >> 16), byte(vni >> 8), byte(vni)}
	return Expr{
		text: fmt.Sprintf("@th,%d,%d 0x%x", offset*8, length*8, vni), proto: UDP,
		code: compare(loadTransport(offset, length), expr.CmpOpEq, id),
	}.unless(vni >= 1<<(length*8), "a virtual network has 24 bits")
}

// InnerDAddr matches VXLAN packets, and Geneve packets without options, with an inner IPv4 packet to that address: its
// header follows UDP 8, the overlay's header 8 and Ethernet 14.
func InnerDAddr(a netip.Addr) Expr {
	const offset = udpHeaderLen + 8 + 14 + daddrOffset
	if !a.Is4() {
		return Expr{err: fmt.Errorf("inner destination %s: not an IPv4 address", a)}
	}
	return Expr{
		text: fmt.Sprintf("@th,%d,%d 0x%x", offset*8, addressLen*8, cidr.Number(a)), proto: UDP,
		code: compare(loadTransport(offset, addressLen), expr.CmpOpEq, a.AsSlice()),
	}
}

// InnerSAddr matches such packets with an inner source in that range.
func InnerSAddr(p netip.Prefix) Expr {
	const offset = udpHeaderLen + 8 + 14 + saddrOffset
	if err := checkPrefix(p); err != nil {
		return Expr{err: fmt.Errorf("inner source: %w", err)}
	}
	mask := binary.BigEndian.AppendUint32(nil, netmask(p))
	return Expr{
		text: fmt.Sprintf("@th,%d,%d & 0x%x == 0x%x", offset*8, addressLen*8, netmask(p), first(p)), proto: UDP,
		code: compareBits(loadTransport(offset, addressLen), mask, expr.CmpOpEq, p.Addr().AsSlice()),
	}
}

// UDPBegins matches UDP packets whose payload begins with these bytes, 1 to 16.
func UDPBegins(with string) Expr {
	return Expr{
		text: fmt.Sprintf("@th,%d,%d 0x%s", udpHeaderLen*8, len(with)*8, strings.TrimLeft(fmt.Sprintf("%x", with), "0")), proto: UDP,
		code: compare(loadTransport(udpHeaderLen, uint32(len(with))), expr.CmpOpEq, []byte(with)),
	}.unless(strings.Trim(with, "\x00") == "" || len(with) > 16, "a match has 1 to 16 bytes, not all zero")
}

// Mark matches the packet's mark.
func Mark(mark uint32) Expr {
	return Expr{text: fmt.Sprintf("meta mark 0x%08x", mark), code: compare(meta(expr.MetaKeyMARK), expr.CmpOpEq, native(mark))}
}
