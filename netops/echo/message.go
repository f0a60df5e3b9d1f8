// Package echo is a small exchange over UDP that measures round trip and loss of a path: between gateways
// through the tunnel, between a node and a gateway through the overlay, and between nodes of two clusters
// through both. Requests can have the full size of the path and are never fragmented, so an answer proves that
// size; requests and answers carry a few values that the ends want to tell each other.
//
// The exchange authenticates nobody: whoever can put packets on the path can forge them. That is kept by
// WireGuard and by the filters of package netops. IPv4 only.
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

// Sizes of a message, without IP and UDP headers (28 bytes), in bytes.
const (
	MinSize = 68
	MaxSize = 65507
)

// version is the layout below. What is added to it later takes a new flag and the padding's first bytes: an
// older end ignores both. Only a change of what is there takes a new version.
//
//	 0 magic "LQNE"    4 version     5 kind       6 flags
//	 8 session        16 sent       24 sequence  28 size       30 path, bytes
//	32 node           36 internal   40 overlay RTT, µs
//	44 proof age, ms  48 proof RTT, µs            52 epoch, s      56 newest, s
//	60 endpoint       64 nodes                    68 padding up to size
const version = 1

// Magic is what every message begins with. Neither WireGuard's messages nor those of VXLAN and Geneve do.
const Magic = "LQNE"

// Kind tells a request from a reply.
type Kind uint8

// The kinds.
const (
	Request Kind = 1
	Reply   Kind = 2
)

// Flags say which values of the content are there.
const (
	flagNode     = 1 << 0
	flagReport   = 1 << 1
	flagProof    = 1 << 2
	flagPath     = 1 << 3
	flagWitness  = 1 << 4
	flagNoWay    = 1 << 5
	flagDraining = 1 << 6
	flagUnused   = 1 << 7
	flagEpochs   = 1 << 8
	flagEndpoint = 1 << 9
	flagNodes    = 1 << 10
	flagOwnNode  = 1 << 11
)

// Message is one request or reply.
type Message struct {
	Kind     Kind
	Session  uint64 // of the prober, random: replies to another process or target do not match
	Sequence uint32
	Sent     int64 // the sender's clock; means nothing to the other side, which returns it
	Size     int   // bytes, with padding; MinSize to MaxSize
	Content  Content
}

// Content is what the ends tell each other. The zero value is nothing.
type Content struct {
	// Node is the address of a node of the sender's cluster that answers echoes, as the receiver's cluster
	// sees it; the zero value: none.
	Node netip.Addr
	// Report is what a node tells its gateway; the zero value: nothing.
	Report Report
	// Path is what the sender found out of its way to the receiver, outside overlay and tunnel.
	Path Path
	// Witness says, in a gateway's reply, that the node is to report when this gateway does not answer any more; in the
	// node's request, that it does.
	Witness bool
	// NoWay says that the sender, a gateway, can forward no packets of the receiver: to a node, that no tunnel of its
	// works; to a gateway of the peer, that no node answers it. From a node, it says that no answers of the receiver
	// arrive.
	NoWay bool
	// Draining says that the sender, a gateway, is about to end: others should carry what it does.
	Draining bool
	// Unused says that the sender sends no packets of pods to the receiver, a gateway, as long as others carry them.
	Unused bool
	// Epoch says since when the sender, a gateway, has its pod, and Newest which epoch is the latest that the sender
	// has heard of the receiver: another pod with the same key. Unix seconds; zero: not known.
	Epoch, Newest uint32
	// Endpoint is, from a gateway of a client, the underlay address at which it reaches the receiver; from one of a
	// server, an address at which clients may reach it, each time another one. The zero value: none.
	Endpoint netip.Addr
	// OwnNode says that Endpoint is the address of the node on which the sender runs.
	OwnNode bool
	// Nodes is how many nodes of its cluster the sender, a gateway, reaches; zero: not known.
	Nodes uint32
}

// Path is what is known of the size of a path. The zero value: nobody has asked yet.
type Path struct {
	Asked bool
	Size  int // bytes, of the largest IP packet that goes there and back in one piece; 0: nobody answers
}

// Report is a node's view of its own path.
type Report struct {
	Internal   netip.Addr    // the node's internal address; the zero value: there is no report
	OverlayRTT time.Duration // node to gateway and back; in microseconds on the wire, 71 minutes at most
	Proven     bool          // whether a node of the peer has ever answered; without it the rest is zero
	ProofAge   time.Duration // since that answer; in milliseconds on the wire, 49 days at most
	ProofRTT   time.Duration // of that answer; in microseconds on the wire
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
	start := len(b)
	b = append(b, fixed[:]...)
	for len(b)-start < m.Size {
		n := min(m.Size-(len(b)-start), len(zeros))
		b = append(b, zeros[:n]...)
	}
	return b, nil
}

var zeros [256]byte

// put writes the content that there is and returns its flags.
func (c Content) put(fixed []byte) (flags uint16) {
	if c.Node.Is4() {
		flags |= flagNode
		putAddr(fixed[32:], c.Node)
	}
	if c.Path.Asked {
		flags |= flagPath
		binary.BigEndian.PutUint16(fixed[30:], uint16(min(max(c.Path.Size, 0), math.MaxUint16)))
	}
	flags |= flagIf(c.Witness, flagWitness) | flagIf(c.NoWay, flagNoWay) | flagIf(c.Draining, flagDraining) | flagIf(c.Unused, flagUnused)
	if c.Epoch != 0 || c.Newest != 0 {
		flags |= flagEpochs
		binary.BigEndian.PutUint32(fixed[52:], c.Epoch)
		binary.BigEndian.PutUint32(fixed[56:], c.Newest)
	}
	if c.Endpoint.Is4() {
		flags |= flagEndpoint | flagIf(c.OwnNode, flagOwnNode)
		putAddr(fixed[60:], c.Endpoint)
	}
	if c.Nodes != 0 {
		flags |= flagNodes
		binary.BigEndian.PutUint32(fixed[64:], c.Nodes)
	}
	if !c.Report.Internal.Is4() {
		return flags
	}
	flags |= flagReport
	putAddr(fixed[36:], c.Report.Internal)
	putUnits(fixed[40:], c.Report.OverlayRTT, time.Microsecond)
	if c.Report.Proven {
		flags |= flagProof
		putUnits(fixed[44:], c.Report.ProofAge, time.Millisecond)
		putUnits(fixed[48:], c.Report.ProofRTT, time.Microsecond)
	}
	return flags
}

func flagIf(set bool, flag uint16) uint16 {
	if set {
		return flag
	}
	return 0
}

func putAddr(b []byte, addr netip.Addr) {
	four := addr.As4()
	copy(b, four[:])
}

// putUnits writes a duration as a number of units; what is out of range becomes the nearest that is not.
func putUnits(b []byte, d, unit time.Duration) {
	binary.BigEndian.PutUint32(b, uint32(min(max(d/unit, 0), math.MaxUint32)))
}

func units(b []byte, unit time.Duration) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * unit
}

// Reason says why a packet was ignored.
type Reason string

// What Parse may find wrong, in the order in which it looks.
const (
	ErrShort   Reason = "shorter than a message"
	ErrMagic   Reason = "not an echo"
	ErrVersion Reason = "unknown version"
	ErrKind    Reason = "neither request nor reply"
	ErrLength  Reason = "length differs from the one stated"
)

// Error implements error.
func (r Reason) Error() string { return "echo: " + string(r) }

// Parse reads a packet. It allocates nothing, and keeps nothing of b.
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

func parseContent(b []byte, flags uint16) (c Content) {
	if flags&flagNode != 0 {
		c.Node = netip.AddrFrom4([4]byte(b[32:]))
	}
	if flags&flagPath != 0 {
		c.Path = Path{Asked: true, Size: int(binary.BigEndian.Uint16(b[30:]))}
	}
	c.Witness, c.NoWay, c.Draining, c.Unused = flags&flagWitness != 0, flags&flagNoWay != 0, flags&flagDraining != 0, flags&flagUnused != 0
	if flags&flagEpochs != 0 {
		c.Epoch, c.Newest = binary.BigEndian.Uint32(b[52:]), binary.BigEndian.Uint32(b[56:])
	}
	if flags&flagEndpoint != 0 {
		c.Endpoint, c.OwnNode = netip.AddrFrom4([4]byte(b[60:])), flags&flagOwnNode != 0
	}
	if flags&flagNodes != 0 {
		c.Nodes = binary.BigEndian.Uint32(b[64:])
	}
	if flags&flagReport == 0 {
		return c
	}
	c.Report.Internal = netip.AddrFrom4([4]byte(b[36:]))
	c.Report.OverlayRTT = units(b[40:], time.Microsecond)
	if flags&flagProof != 0 {
		c.Report.Proven = true
		c.Report.ProofAge = units(b[44:], time.Millisecond)
		c.Report.ProofRTT = units(b[48:], time.Microsecond)
	}
	return c
}
