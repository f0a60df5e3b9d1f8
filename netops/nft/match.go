package nft

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proto is an IP protocol number.
type Proto uint8

// The protocols that rules speak of.
const (
	ICMP Proto = 1
	TCP  Proto = 6
	UDP  Proto = 17
)

// State is a set of connection tracking states.
type State uint32

// The connection tracking states; they can be or'ed.
const (
	Invalid     State = 1
	Established State = 2
	Related     State = 4
	New         State = 8
	Untracked   State = 64
)

// Direction is a packet's direction within its connection.
type Direction uint8

// The directions: that of the connection's first packet, and the other.
const (
	Original Direction = 0
	Reply    Direction = 1
)

// IIf matches packets that came in through the named interface.
func IIf(name string) Expr { return Expr{text: fmt.Sprintf("iifname %q", name)} }

// OIf matches packets that leave through the named interface.
func OIf(name string) Expr { return Expr{text: fmt.Sprintf("oifname %q", name)} }

// IIfNot matches packets that came in through any interface but the named one.
func IIfNot(name string) Expr { return Expr{text: fmt.Sprintf("iifname != %q", name)} }

// OIfNot matches packets that leave through any interface but the named one.
func OIfNot(name string) Expr { return Expr{text: fmt.Sprintf("oifname != %q", name)} }

// SAddr matches source addresses in the prefix.
func SAddr(p netip.Prefix) Expr { return Expr{text: "ip saddr " + p.String()} }

// DAddr matches destination addresses in the prefix.
func DAddr(p netip.Prefix) Expr { return Expr{text: "ip daddr " + p.String()} }

// SAddrNot matches source addresses outside the prefix.
func SAddrNot(p netip.Prefix) Expr { return Expr{text: "ip saddr != " + p.String()} }

// DAddrNot matches destination addresses outside the prefix.
func DAddrNot(p netip.Prefix) Expr { return Expr{text: "ip daddr != " + p.String()} }

// SAddrIn matches source addresses in the named set.
func SAddrIn(set string) Expr { return Expr{text: "ip saddr @" + set} }

// DAddrIn matches destination addresses in the named set.
func DAddrIn(set string) Expr { return Expr{text: "ip daddr @" + set} }

// SAddrNotIn matches source addresses outside the named set.
func SAddrNotIn(set string) Expr { return Expr{text: "ip saddr != @" + set} }

// DAddrNotIn matches destination addresses outside the named set.
func DAddrNotIn(set string) Expr { return Expr{text: "ip daddr != @" + set} }

// DAddrLocal matches destination addresses of this network namespace.
func DAddrLocal() Expr { return Expr{text: "fib daddr type local"} }

// Protocol matches the transport protocol.
func Protocol(p Proto) Expr { return Expr{text: fmt.Sprintf("meta l4proto %d", p)} }

// UDPDPort matches UDP packets to the port.
func UDPDPort(port uint16) Expr { return Expr{text: fmt.Sprintf("udp dport %d", port)} }

// UDPSPort matches UDP packets from the port.
func UDPSPort(port uint16) Expr { return Expr{text: fmt.Sprintf("udp sport %d", port)} }

// TCPDPort matches TCP packets to the port.
func TCPDPort(port uint16) Expr { return Expr{text: fmt.Sprintf("tcp dport %d", port)} }

// TCPSyn matches TCP packets that open a connection or answer its opening.
func TCPSyn() Expr { return Expr{text: "tcp flags syn / syn,rst"} }

// ICMPType matches ICMP packets of any of the types.
func ICMPType(types ...uint8) Expr { return Expr{text: fmt.Sprintf("icmp type %v", types)} }

// OverlayID matches UDP packets whose payload is VXLAN or Geneve of that virtual network (24 bits).
func OverlayID(vni uint32) Expr { return Expr{text: fmt.Sprintf("@th,96,24 0x%x", vni)} }

// CTState matches packets whose connection tracking state is any of the given.
func CTState(states ...State) Expr { return Expr{text: "ct state " + strings.Repeat("x", len(states))} }

// CTMark matches the connection's mark.
func CTMark(mark uint32) Expr { return Expr{text: fmt.Sprintf("ct mark 0x%08x", mark)} }

// CTDirection matches the packet's direction within its connection.
func CTDirection(d Direction) Expr { return Expr{text: fmt.Sprintf("ct direction %d", d)} }

// CTStatusDNAT matches packets of connections whose destination is translated.
func CTStatusDNAT() Expr { return Expr{text: "ct status dnat"} }

// CTOriginalDAddr matches connections whose first packet was, before any translation, for an address in the prefix.
func CTOriginalDAddr(p netip.Prefix) Expr { return Expr{text: "ct original daddr " + p.String()} }

// Mark matches the packet's mark.
func Mark(mark uint32) Expr { return Expr{text: fmt.Sprintf("meta mark 0x%08x", mark)} }
