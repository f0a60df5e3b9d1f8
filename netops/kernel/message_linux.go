package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// routeSocket is an rtnetlink socket. The netlink library does not support nexthop objects, the routes that use them,
// and IFLA_AF_SPEC of links.
type routeSocket struct {
	conn *raw.Conn
}

// message is a request: a fixed header, one of the structs of package unix, and attributes.
type message struct {
	kind   uint16 // RTM_…
	flags  raw.HeaderFlags
	header any
	fields []field
}

// changing returns the message that adds, replaces or removes an object. how is one of the netlink flags for an object
// that already exists.
func changing(op netops.Op, newKind uint16, how raw.HeaderFlags, header any, fields ...field) message {
	if op == netops.Remove {
		return message{kind: newKind + 1, header: header, fields: fields} // RTM_DEL… follows RTM_NEW…
	}
	return message{kind: newKind, flags: raw.Create | how, header: header, fields: fields}
}

// execute sends a request and waits for the acknowledgement.
func (s *routeSocket) execute(m message) error {
	m.flags |= raw.Acknowledge
	_, err := s.roundTrip(m)
	return err
}

// collect dumps all objects of a kind and returns those for which decode returns true. If the objects change during the
// dump, it is repeated.
func collect[T any](s *routeSocket, m message, decode func([]byte) (object T, of bool, err error)) ([]T, error) {
	m.flags |= raw.Dump
	var found []T
	err := consistently(func() error {
		found = nil
		replies, err := s.roundTrip(m)
		if err != nil {
			return err
		}
		for _, r := range replies {
			if r.Header.Flags&raw.DumpInterrupted != 0 {
				return unix.EINTR
			}
			object, of, err := decode(r.Data)
			if err != nil {
				return err
			}
			if of {
				found = append(found, object)
			}
		}
		return nil
	})
	return found, err
}

// roundTrip sends a request and returns the replies.
func (s *routeSocket) roundTrip(m message) ([]raw.Message, error) {
	data, err := binary.Append(nil, binary.NativeEndian, m.header)
	if err != nil {
		return nil, err
	}
	ae := raw.NewAttributeEncoder()
	encode(ae, m.fields)
	attrs, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	header := raw.Header{Type: raw.HeaderType(m.kind), Flags: raw.Request | m.flags}
	replies, err := s.conn.Execute(raw.Message{Header: header, Data: append(data, attrs...)})
	return replies, cause(err)
}

// cause returns the kernel's error without the text that the library adds.
func cause(err error) error {
	op, is := errors.AsType[*raw.OpError](err)
	switch {
	case !is:
		return err
	case op.Message == "":
		return op.Err
	}
	return fmt.Errorf("%w (%s)", op.Err, op.Message)
}

// consistently repeats a dump that was interrupted by a change of the dumped objects. Both libraries return EINTR then.
func consistently(dump func() error) error {
	const attempts = 20
	var err error
	for range attempts {
		if err = dump(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return err
}
