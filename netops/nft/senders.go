package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Sender is an element of a set of Senders with Ports.
type Sender struct {
	From netip.AddrPort
	Left time.Duration // until it expires
}

// Senders returns the elements of a set of Senders with Ports in a table of IPv4; none if the set does not exist.
func (c *Conn) Senders(table, set string) ([]Sender, error) {
	answers, err := c.request(IP, unix.NFT_MSG_GETSETELEM, netlink.Dump,
		attr(unix.NFTA_SET_ELEM_LIST_TABLE, table), attr(unix.NFTA_SET_ELEM_LIST_SET, set))
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read set %s: %w", set, err)
	}
	var senders []Sender
	for _, a := range answers {
		for _, e := range a.elements(unix.NFTA_SET_ELEM_LIST_ELEMENTS) {
			if s, ok := decode(e).sender(); ok {
				senders = append(senders, s)
			}
		}
	}
	return senders, nil
}

// sender decodes an element: an address and a port, each in a register of four bytes.
func (a attributes) sender() (s Sender, ok bool) {
	key := decode(a[unix.NFTA_SET_ELEM_KEY])[unix.NFTA_DATA_VALUE]
	if len(key) != 2*addressLen {
		return s, false
	}
	left, ok := a.long(unix.NFTA_SET_ELEM_EXPIRATION) // milliseconds
	s.From = netip.AddrPortFrom(netip.AddrFrom4([4]byte(key)), binary.BigEndian.Uint16(key[addressLen:]))
	s.Left = time.Duration(left) * time.Millisecond
	return s, ok
}
