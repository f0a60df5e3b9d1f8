// Package echo measures round trip time and loss of a path over UDP: between gateways through the tunnel, between a
// node and a gateway through the overlay, and between nodes of two clusters through both. Requests can have the full
// size of the path and are never fragmented, so that a reply verifies that size. Requests and replies also carry a few
// values between the ends.
//
// Messages are not authenticated: every host that can send packets on the path can forge them. WireGuard and the
// filters of package netops prevent that.
package echo

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// Port is the UDP port at which nodes and gateways answer.
const Port = 6092

// Sizes of a message in bytes, without IP and UDP headers (28 bytes).
const (
	MinSize = 80
	MaxSize = 65507
)

// version is the version of the layout below. Additions use a new flag and the first bytes of the padding, which older
// ends ignore. From the first release on, only incompatible
// changes need a new version. Nodes are numbers, from which a receiver derives addresses
// of either family.
//
//	 0 magic "LQNE"   4 version      5 kind       6 flags
//	 8 session       16 sent        24 sequence  28 size       30 path, bytes
//	32 node          36 own node    40 overlay RTT, µs
//	44 proof age, ms 48 proof RTT, µs            52 epoch, s   56 newest, s
//	60 nodes         64 endpoint, IPv6 or IPv4 within ::ffff:0:0/96 (RFC 4291, 2.5.5.2)
//	80 padding up to size
const version = 1

// Magic is the beginning of every message. It differs from messages of WireGuard, VXLAN and Geneve.
const Magic = "LQNE"

// Kind distinguishes requests and replies.
type Kind uint8

// The kinds.
const (
	Request Kind = 1
	Reply   Kind = 2
)

// Flags of the content. Other values have none: zero means that they are absent.
const (
	flagProof    = 1 << 0
	flagPath     = 1 << 1
	flagWitness  = 1 << 2
	flagNoWay    = 1 << 3
	flagDraining = 1 << 4
	flagUnused   = 1 << 5
	flagOwnNode  = 1 << 6
)

// Message is one request or reply.
type Message struct {
	Kind     Kind
	Session  uint64 // of the prober, random: replies to another process or target do not match
	Sequence uint32
	Sent     int64 // the sender's clock; the receiver returns it unchanged
	Size     int   // bytes, with padding; MinSize to MaxSize
	Content  Content
}

// Content has the values that the ends exchange. The zero value is empty.
type Content struct {
	// Node is the number of a node of the sender's cluster that answers echoes; zero: none.
	Node uint32
	// Report is the report of a node to its gateway; the zero value: none.
	Report Report
	// Path is the measured path from the sender to the receiver, outside overlay and tunnel.
	Path Path
	// Witness in a gateway's reply requests the node to report when this gateway stops answering; in the node's request
	// it confirms that.
	Witness bool
	// NoWay means that the sender, a gateway, cannot forward packets of the receiver: sent to a node, because none of
	// its tunnels works; sent to a gateway of the peer, because no node answers it. From a node it means that no
	// replies of the receiver arrive.
	NoWay bool
	// Draining means that the sender, a gateway, will shut down: other gateways should carry its packets.
	Draining bool
	// Unused means that the sender sends no packets of pods to the receiver, a gateway, while others carry them.
	Unused bool
	// Epoch is the time since which the sender, a gateway, has its pod. Newest is the latest epoch that the sender has
	// received from the receiver's key, to detect another pod with the same key. Unix seconds; zero: not known.
	Epoch, Newest uint32
	// Endpoint is, from a gateway of a client, the underlay address at which it reaches the receiver; from a gateway of
	// a server, an address at which clients may reach it, in turn. The zero value: none.
	Endpoint netip.Addr
	// OwnNode means that Endpoint is the address of the node on which the sender runs.
	OwnNode bool
	// Nodes is the number of nodes of its cluster that the sender, a gateway, reaches; zero: not known.
	Nodes uint32
}

// Path is the measured size of a path. The zero value: not measured yet.
type Path struct {
	Asked bool
	Size  int // bytes: largest IP packet that passes in both directions unfragmented; 0: no reply
}

// Report is a node's view of its own path.
type Report struct {
	Node        uint32        // the node's number; zero: no report
	OverlayRTT  time.Duration // node to gateway and back; in microseconds on the wire, 71 minutes at most
	Verified    bool          // whether a node of the peer has ever answered; otherwise the rest is zero
	VerifiedAge time.Duration // time since that answer; in milliseconds on the wire, 49 days at most
	VerifiedRTT time.Duration // of that answer; in microseconds on the wire
}

// AppendTo appends the message in wire format to b.
func (m Message) AppendTo(b []byte) ([]byte, error) {
	if m.Size < MinSize || m.Size > MaxSize {
		return b, fmt.Errorf("encode echo of %d bytes: want %d to %d", m.Size, MinSize, MaxSize)
	}
	var fixed [MinSize]byte
	copy(fixed[:], Magic)
	fixed[4], fixed[5] = version, byte(m.Kind)
	binary.BigEndian.PutUint64(fixed[8:], m.Session)
	binary.BigEndian.PutUint64(fixed[16:], uint64(m.Sent))
	binary.BigEndian.PutUint32(fixed[24:], m.Sequence)
	binary.BigEndian.PutUint16(fixed[28:], uint16(m.Size))
	binary.BigEndian.PutUint16(fixed[6:], m.Content.put(fixed[:]))
	b = append(b, fixed[:]...)
	return append(b, make([]byte, m.Size-MinSize)...), nil // the compiler allocates no slice for make
}

// put writes the content and returns its flags.
func (c Content) put(fixed []byte) (flags uint16) {
	r := c.Report
	binary.BigEndian.PutUint32(fixed[32:], c.Node)
	binary.BigEndian.PutUint32(fixed[36:], r.Node)
	binary.BigEndian.PutUint32(fixed[52:], c.Epoch)
	binary.BigEndian.PutUint32(fixed[56:], c.Newest)
	binary.BigEndian.PutUint32(fixed[60:], c.Nodes)
	if c.Path.Asked {
		flags |= flagPath
		binary.BigEndian.PutUint16(fixed[30:], uint16(min(max(c.Path.Size, 0), math.MaxUint16)))
	}
	if c.Endpoint.IsValid() {
		endpoint := c.Endpoint.As16()
		copy(fixed[64:], endpoint[:])
	}
	if r.Node != 0 {
		putUnits(fixed[40:], r.OverlayRTT, time.Microsecond)
	}
	if r.Node != 0 && r.Verified {
		flags |= flagProof
		putUnits(fixed[44:], r.VerifiedAge, time.Millisecond)
		putUnits(fixed[48:], r.VerifiedRTT, time.Microsecond)
	}
	return flags | flagIf(c.Witness, flagWitness) | flagIf(c.NoWay, flagNoWay) | flagIf(c.Draining, flagDraining) |
		flagIf(c.Unused, flagUnused) | flagIf(c.OwnNode, flagOwnNode)
}

func flagIf(set bool, flag uint16) uint16 {
	if set {
		return flag
	}
	return 0
}

// putUnits writes a duration as a number of units, limited to the range of the field.
func putUnits(b []byte, d, unit time.Duration) {
	binary.BigEndian.PutUint32(b, uint32(min(max(d/unit, 0), math.MaxUint32)))
}

func units(b []byte, unit time.Duration) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * unit
}

// Reason is the reason for which a packet was ignored.
type Reason string

// Errors of Parse, in the order of its checks.
const (
	ErrShort   Reason = "shorter than a message"
	ErrMagic   Reason = "not an echo"
	ErrVersion Reason = "unknown version"
	ErrKind    Reason = "neither request nor reply"
	ErrLength  Reason = "length differs from the one stated"
)

// Error implements error.
func (r Reason) Error() string { return "echo: " + string(r) }

// Parse decodes a packet. It does not allocate, and does not retain b.
func Parse(b []byte) (Message, error) {
	switch {
	case len(b) < MinSize:
		return Message{}, ErrShort
	case string(b[:len(Magic)]) != Magic:
		return Message{}, ErrMagic
	case b[4] != version:
		return Message{}, ErrVersion
	case b[5] != byte(Request) && b[5] != byte(Reply):
		return Message{}, ErrKind
	case int(binary.BigEndian.Uint16(b[28:])) != len(b):
		return Message{}, ErrLength
	}
	return Message{
		Kind:     Kind(b[5]),
		Session:  binary.BigEndian.Uint64(b[8:]),
		Sent:     int64(binary.BigEndian.Uint64(b[16:])),
		Sequence: binary.BigEndian.Uint32(b[24:]),
		Size:     len(b),
		Content:  parseContent(b, binary.BigEndian.Uint16(b[6:])),
	}, nil
}

func parseContent(b []byte, flags uint16) Content {
	c := Content{
		Node: binary.BigEndian.Uint32(b[32:]), Epoch: binary.BigEndian.Uint32(b[52:]), Newest: binary.BigEndian.Uint32(b[56:]),
		Nodes: binary.BigEndian.Uint32(b[60:]), Report: Report{Node: binary.BigEndian.Uint32(b[36:])},
		Witness: flags&flagWitness != 0, NoWay: flags&flagNoWay != 0, Draining: flags&flagDraining != 0,
		Unused: flags&flagUnused != 0, OwnNode: flags&flagOwnNode != 0,
	}
	if endpoint := [16]byte(b[64:]); endpoint != [16]byte{} {
		c.Endpoint = netip.AddrFrom16(endpoint).Unmap()
	}
	if flags&flagPath != 0 {
		c.Path = Path{Asked: true, Size: int(binary.BigEndian.Uint16(b[30:]))}
	}
	if c.Report.Node == 0 {
		return c
	}
	c.Report.OverlayRTT = units(b[40:], time.Microsecond)
	if flags&flagProof != 0 {
		c.Report.Verified = true
		c.Report.VerifiedAge = units(b[44:], time.Millisecond)
		c.Report.VerifiedRTT = units(b[48:], time.Microsecond)
	}
	return c
}
