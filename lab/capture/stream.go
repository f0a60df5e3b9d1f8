package capture

import (
	"bytes"
	"fmt"
	"net/netip"
)

// Direction is one direction of a TCP connection.
type Direction struct{ From, To netip.AddrPort }

// Streams puts the segments of TCP connections in order.
type Streams struct {
	begin func(Direction) func(data []byte) error
	open  map[Direction]*stream
}

// stream is what one direction has sent.
type stream struct {
	next  uint32 // sequence number of the next byte
	early []segment
	read  func([]byte) error
	err   error
}

// segment arrived before the bytes that precede it.
type segment struct {
	sequence uint32
	payload  []byte
}

// NewStreams returns streams that are read by what begin returns: it gets each byte once, in order.
func NewStreams(begin func(Direction) (read func(data []byte) error)) *Streams {
	return &Streams{begin: begin, open: map[Direction]*stream{}}
}

// Add adds a packet of TCP. It returns the first error of the stream's reader, and an error for data of a connection of
// which the beginning was not captured.
func (s *Streams) Add(p Packet) error {
	d := Direction{netip.AddrPortFrom(p.Source, p.SourcePort), netip.AddrPortFrom(p.Target, p.TargetPort)}
	st := s.open[d]
	if p.Begins && (st == nil || st.next != p.Sequence+1) { // else it is sent again
		st = &stream{next: p.Sequence + 1, read: s.begin(d)}
		s.open[d] = st
	}
	switch {
	case len(p.Payload) == 0:
		return nil
	case st == nil:
		return fmt.Errorf("from %s to %s: the beginning of the connection was not captured", d.From, d.To)
	}
	st.add(segment{p.Sequence, p.Payload})
	return st.err
}

// add reads a segment, and those that waited for it.
func (s *stream) add(one segment) {
	if int32(one.sequence-s.next) > 0 { // sequence numbers wrap around
		s.early = append(s.early, segment{one.sequence, bytes.Clone(one.payload)})
		return
	}
	s.deliver(one)
	for again := true; again; {
		again = false
		waiting := s.early
		s.early = nil
		for _, w := range waiting {
			if int32(w.sequence-s.next) > 0 {
				s.early = append(s.early, w)
				continue
			}
			s.deliver(w)
			again = true
		}
	}
}

// deliver reads the bytes of a segment that are new.
func (s *stream) deliver(one segment) {
	known := s.next - one.sequence
	if known >= uint32(len(one.payload)) {
		return // sent again
	}
	data := one.payload[known:]
	s.next += uint32(len(data))
	if s.err == nil {
		s.err = s.read(data)
	}
}
