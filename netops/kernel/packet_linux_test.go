package kernel

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
)

// packet is an IPv4 header made by hand.
type packet struct {
	protocol       byte
	source, target netip.Addr
	id             uint16
	fragment       uint16 // flags and offset
	options        []byte // a multiple of four bytes
}

const moreFragments = 0x2000

// with is the packet with something after its header.
func (p packet) with(payload []byte) []byte {
	const header, word = 20, 4
	from, to := p.source.As4(), p.target.As4()
	b := []byte{0x40 + byte(header+len(p.options))/word, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(header+len(p.options)+len(payload)))
	b = binary.BigEndian.AppendUint16(b, p.id)
	b = binary.BigEndian.AppendUint16(b, p.fragment)
	b = append(b, 64, p.protocol, 0, 0)
	b = append(append(append(b, from[:]...), to[:]...), p.options...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...)
}

// udp is a UDP header, without a checksum, and what is after it.
func udp(from, to uint16, payload []byte) []byte {
	const header = 8
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(header+len(payload)))
	return append(append(b, 0, 0), payload...)
}

// syn returns a TCP packet that opens a connection.
func syn(source, target netip.AddrPort) []byte {
	const length, flagSYN, window = 20, 2, 0xffff
	b := binary.BigEndian.AppendUint16(nil, source.Port())
	b = binary.BigEndian.AppendUint16(b, target.Port())
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 0, length/4<<4, flagSYN)
	b = append(binary.BigEndian.AppendUint16(b, window), 0, 0, 0, 0)
	pseudo := append(source.Addr().AsSlice(), target.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(b[16:], checksum(append(append(pseudo, 0, unix.IPPROTO_TCP, 0, length), b...)))
	return packet{protocol: unix.IPPROTO_TCP, source: source.Addr(), target: target.Addr()}.with(b)
}

// datagram is an IPv4 packet to servicePort, from where answers would come back.
func datagram(source, target netip.Addr, payload string) []byte {
	return packet{protocol: unix.IPPROTO_UDP, source: source, target: target, id: 1}.with(udp(servicePort, servicePort, []byte(payload)))
}

// pieces is such a packet in two fragments. The first has eight bytes of the payload.
func pieces(source, target netip.Addr, id uint16, payload string) (first, second []byte) {
	const split = 16
	whole := udp(servicePort, servicePort, []byte(payload))
	p := packet{protocol: unix.IPPROTO_UDP, source: source, target: target, id: id, fragment: moreFragments}
	first, p.fragment = p.with(whole[:split]), split/8
	return first, p.with(whole[split:])
}

// checksum is that of headers (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// hardware is the MAC address of a link.
func (ns namespace) hardware(link string) (mac net.HardwareAddr) {
	ns.t.Helper()
	ns.Inside(func() error {
		l, err := net.InterfaceByName(link)
		if err == nil {
			mac = l.HardwareAddr
		}
		return err
	})
	return mac
}

// emit puts an IP packet on a link as it is, past routes and rules of the sender: what CAP_NET_RAW is enough for.
func (ns namespace) emit(link string, to net.HardwareAddr, packet []byte) {
	ns.t.Helper()
	send, done := ns.emitter(link, to)
	defer done()
	require.NoError(ns.t, send(packet))
}

// emitter returns what emits packets, and what ends it.
func (ns namespace) emitter(link string, to net.HardwareAddr) (send func(packet []byte) error, done func()) {
	ns.t.Helper()
	fd, index := -1, 0
	ns.Inside(func() error {
		l, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		index = l.Index
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		return err
	})
	return func(packet []byte) error {
		const ipv4, ipv6 = 0x0008, 0xdd86 // ETH_P_IP and ETH_P_IPV6 in network byte order
		address := &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: index, Halen: uint8(len(to))}
		if packet[0]>>4 == 6 {
			address.Protocol = ipv6
		}
		copy(address.Addr[:], to)
		return unix.Sendto(fd, packet, 0, address)
	}, func() { _ = unix.Close(fd) }
}
