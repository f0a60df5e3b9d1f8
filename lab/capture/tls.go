package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of TLS records and of handshake messages, and an extension (RFC 8446, sections 4, 4.2 and 5.1).
const (
	recordChange    = 20 // without meaning: it is there for middleboxes
	recordHandshake = 22
	recordData      = 23
	recordHeader    = 5
	recordMost      = 1<<14 + 256

	clientHello       = 1
	serverHello       = 2
	handshakeHeader   = 4
	supportedVersions = 43
	tls13             = 0x0304

	hellosMost = 2 // the server can ask for another one
)

// TLS13 reads one direction of a connection, and checks that it is TLS 1.3 and nothing else: the hello of a client or
// of a server, and then encrypted records. The zero value is at the beginning.
type TLS13 struct {
	Records int // encrypted

	rest   []byte // of a record that is not complete
	hellos int
}

// Read reads the next bytes, and returns an error if they are anything else.
func (c *TLS13) Read(data []byte) error {
	c.rest = append(c.rest, data...)
	for len(c.rest) >= recordHeader {
		size := int(binary.BigEndian.Uint16(c.rest[3:]))
		if c.rest[1] != 3 || size == 0 || size > recordMost {
			return fmt.Errorf("no record of TLS: %q", c.rest[:recordHeader])
		}
		if len(c.rest) < recordHeader+size {
			return nil
		}
		if err := c.record(c.rest[0], c.rest[recordHeader:recordHeader+size]); err != nil {
			return err
		}
		c.rest = c.rest[recordHeader+size:]
	}
	return nil
}

func (c *TLS13) record(kind byte, content []byte) error {
	switch {
	case kind == recordData && c.hellos > 0:
		c.Records++
		return nil
	case kind == recordHandshake && c.Records == 0 && c.hellos < hellosMost:
		c.hellos++
		return checkHello(content)
	case kind == recordChange && c.Records == 0 && c.hellos > 0 && len(content) == 1:
		return nil
	}
	return fmt.Errorf("a record of type %d that is not encrypted, after %d hellos and %d encrypted records", kind, c.hellos, c.Records)
}

// checkHello checks that a hello offers TLS 1.3, or selects it.
func checkHello(message []byte) error {
	if len(message) < handshakeHeader {
		return errors.New("a handshake that is cut")
	}
	kind, r := message[0], &reader{rest: message[handshakeHeader:]}
	r.skip(2 + 32) // version and random bytes
	r.skip(r.number(1))
	switch kind {
	case clientHello:
		r.skip(r.number(2)) // cipher suites
		r.skip(r.number(1)) // compression methods
	case serverHello:
		r.skip(2 + 1) // those that it selects
	default:
		return fmt.Errorf("a handshake message of type %d that is not encrypted", kind)
	}
	for r.number(2); len(r.rest) > 0; {
		extension, length := r.number(2), r.number(2)
		value := &reader{rest: r.rest[:min(length, len(r.rest))]}
		r.skip(length)
		if extension != supportedVersions {
			continue
		}
		if kind == clientHello {
			value.skip(1)
		}
		for len(value.rest) > 0 {
			if value.number(2) == tls13 {
				return nil
			}
		}
	}
	return errors.New("a hello without TLS 1.3")
}

// reader reads numbers. What is beyond the end is zero.
type reader struct{ rest []byte }

func (r *reader) skip(bytes int) { r.rest = r.rest[min(bytes, len(r.rest)):] }

func (r *reader) number(bytes int) (n int) {
	for _, b := range r.rest[:min(bytes, len(r.rest))] {
		n = n<<8 | int(b)
	}
	r.skip(bytes)
	return n
}
