package middlebox

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Message is a frame of a WebSocket (RFC 6455, section 5.2), as who has ended TLS sees it.
type Message struct {
	Kind    byte // opcode: 2 is data
	Payload []byte
	Err     error // what follows the HTTP header is no WebSocket
}

// Messages returns what reads one direction of a connection, from its first byte on.
func Messages(seen func(Message)) (read func(data []byte) error) {
	m := newMessages(seen)
	return func(data []byte) error {
		m.read(data)
		return nil
	}
}

// messageMost is the longest frame that is expected, in bytes.
const messageMost = 1 << 20

// messages reads one direction of a connection: the header of a request or of an answer, and then frames.
type messages struct {
	seen    func(Message)
	rest    []byte
	started bool // the header is over
	failed  bool
}

func newMessages(seen func(Message)) *messages { return &messages{seen: seen} }

// read reads the next bytes.
func (m *messages) read(data []byte) {
	if m.failed {
		return
	}
	m.rest = append(m.rest, data...)
	if !m.started {
		header, rest, found := bytes.Cut(m.rest, []byte("\r\n\r\n"))
		if !found {
			return
		}
		first, _, _ := bytes.Cut(header, []byte("\r\n"))
		// Of an answer without an upgrade, nothing is a frame.
		m.failed = bytes.HasPrefix(first, []byte("HTTP/")) && !bytes.Contains(first, []byte(" 101 "))
		m.started, m.rest = true, rest
	}
	for !m.failed {
		size, ok := m.frame()
		if !ok {
			return
		}
		m.rest = m.rest[size:]
	}
}

// frame reads the frame at the beginning, and returns its size; false: it is not complete.
func (m *messages) frame() (size int, ok bool) {
	const header = 2
	if len(m.rest) < header {
		return 0, false
	}
	kind, masked, length := m.rest[0], m.rest[1]>>7 == 1, uint64(m.rest[1]&0x7f)
	at := header
	switch length {
	case 126:
		at += 2
	case 127:
		at += 8
	}
	var key []byte
	if masked {
		at += 4
	}
	if len(m.rest) < at {
		return 0, false
	}
	switch length {
	case 126:
		length = uint64(binary.BigEndian.Uint16(m.rest[header:]))
	case 127:
		length = binary.BigEndian.Uint64(m.rest[header:])
	}
	if masked {
		key = m.rest[at-4 : at]
	}
	if length > messageMost || kind&0x70 != 0 {
		m.failed = true
		m.seen(Message{Err: errors.New("no frame of a WebSocket")})
		return 0, false
	}
	if uint64(len(m.rest)) < uint64(at)+length {
		return 0, false
	}
	payload := bytes.Clone(m.rest[at : at+int(length)])
	for i := range payload {
		if masked {
			payload[i] ^= key[i%len(key)]
		}
	}
	m.seen(Message{Kind: kind & 0x0f, Payload: payload})
	return at + int(length), true
}
