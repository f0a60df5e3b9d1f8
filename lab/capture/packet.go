package capture

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// Types of frames (IEEE 802).
const (
	IPv4 = 0x0800
	ARP  = 0x0806
	IPv6 = 0x86dd
)

// Protocols of IP.
const (
	HopByHop = 0 // of IPv6: options, followed by the real protocol
	ICMP     = 1
	TCP      = 6
	UDP      = 17
	ICMPv6   = 58
)

// Packet is a decoded frame. Fields that a short frame or a fragment lacks are zero.
type Packet struct {
	Link   string
	Sender [6]byte // hardware address
	Type   uint16  // of the frame

	// Source and Target are the outermost addresses of an IPv4, IPv6 or ARP packet.
	Source, Target netip.Addr
	Protocol       byte // of an IPv4 or IPv6 packet
	Fragment       bool // not the first: Payload is all that follows the IP header

	SourcePort, TargetPort uint16  // of TCP and UDP
	Sequence               uint32  // of TCP
	Begins                 bool    // a TCP connection: it is the first packet of a direction
	Payload                []byte  // after the headers of IP, UDP and TCP; valid until handle returns
	Quoted                 *Packet // in an ICMP error: the beginning of the packet that caused it

	Frame []byte // all of it; valid until handle returns
}

// Sizes of headers, in bytes.
const (
	ethernetHeader = 14
	ipHeader       = 20
	ip6Header      = 40
	arpSize        = 28 // of one for IPv4
	portsSize      = 4
	udpHeader      = 8
	tcpHeader      = 20
	icmpHeader     = 8
)

// Decode reads a frame of Ethernet.
func Decode(link string, frame []byte) Packet {
	p := Packet{Link: link, Frame: frame}
	if len(frame) < ethernetHeader {
		return p
	}
	p.Sender = [6]byte(frame[6:])
	p.Type = binary.BigEndian.Uint16(frame[12:])
	rest := frame[ethernetHeader:]
	switch {
	case p.Type == IPv4:
		p.decodeIP(rest)
	case p.Type == IPv6 && len(rest) >= ip6Header:
		p.Source, p.Target = netip.AddrFrom16([16]byte(rest[8:])), netip.AddrFrom16([16]byte(rest[24:]))
		p.Protocol, p.Payload = rest[6], rest[ip6Header:]
	case p.Type == ARP && len(rest) >= arpSize:
		p.Source, p.Target = netip.AddrFrom4([4]byte(rest[14:])), netip.AddrFrom4([4]byte(rest[24:]))
	}
	return p
}

// decodeIP reads an IPv4 packet, or the beginning of one.
func (p *Packet) decodeIP(packet []byte) {
	if len(packet) < ipHeader {
		return
	}
	p.Source, p.Target = netip.AddrFrom4([4]byte(packet[12:])), netip.AddrFrom4([4]byte(packet[16:]))
	p.Protocol = packet[9]
	const offset = 1<<13 - 1 // in units of 8 bytes
	p.Fragment = binary.BigEndian.Uint16(packet[6:])&offset != 0
	header := int(packet[0]&15) * 4
	if header < ipHeader || len(packet) < header {
		return
	}
	rest := packet[header:]
	p.Payload = rest
	if p.Fragment {
		return
	}
	switch p.Protocol {
	case UDP:
		p.decodePorts(rest, udpHeader)
	case TCP:
		size := tcpHeader
		if len(rest) >= tcpHeader {
			const syn = 1 << 1
			size = int(rest[12]>>4) * 4
			p.Sequence, p.Begins = binary.BigEndian.Uint32(rest[4:]), rest[13]&syn != 0
		}
		p.decodePorts(rest, size)
	case ICMP:
		if len(rest) >= icmpHeader && isError(rest[0]) {
			p.Quoted = &Packet{Link: p.Link, Sender: p.Sender, Type: IPv4, Frame: rest[icmpHeader:]}
			p.Quoted.decodeIP(rest[icmpHeader:])
		}
	}
}

// isError reports whether a message of ICMP quotes a packet (RFC 792, RFC 1122 section 3.2.2).
func isError(kind byte) bool {
	switch kind {
	case 3, 4, 5, 11, 12: // unreachable, source quench, redirect, time exceeded, parameter problem
		return true
	}
	return false
}

func (p *Packet) decodePorts(segment []byte, header int) {
	if len(segment) < portsSize {
		return
	}
	p.SourcePort, p.TargetPort = binary.BigEndian.Uint16(segment), binary.BigEndian.Uint16(segment[2:])
	p.Payload = segment[min(header, len(segment)):]
}

// String is a line with all known fields of the packet.
func (p Packet) String() string {
	const shown = 48 // bytes
	text := fmt.Sprintf("on %s from %s: type %04x", p.Link, net.HardwareAddr(p.Sender[:]), p.Type)
	if p.Source.IsValid() {
		text += fmt.Sprintf(", %s to %s, protocol %d, ports %d to %d", p.Source, p.Target, p.Protocol, p.SourcePort, p.TargetPort)
	}
	if p.Fragment {
		text += ", fragment"
	}
	if p.Quoted != nil {
		text += ", quotes {" + p.Quoted.String() + "}"
	}
	return text + fmt.Sprintf(", %d bytes: %q", len(p.Payload), p.Payload[:min(shown, len(p.Payload))])
}
