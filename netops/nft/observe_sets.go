package nft

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// readSets returns the named sets of the table, and the replacement of each anonymous one in canonical rules.
func (c *Conn) readSets(family Family, table string) ([]Set, map[string]string, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETSET, netlink.Dump, attr(unix.NFTA_SET_TABLE, table))
	if err != nil {
		return nil, nil, err
	}
	var sets []Set
	anonymous := make(map[string]string)
	for _, a := range answers {
		name, flags := a.string(unix.NFTA_SET_NAME), a.number(unix.NFTA_SET_FLAGS)
		if s := a.senders(); s.Senders > 0 {
			sets = append(sets, s)
			continue
		}
		elements, err := c.readElements(family, table, name)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("set %s: %w", name, err)
		case flags&unix.NFT_SET_ANONYMOUS != 0:
			anonymous[name] = readAnonymous(flags, elements)
		default:
			sets = append(sets, readSet(name, flags, a.number(unix.NFTA_SET_KEY_TYPE), elements))
		}
	}
	return sets, anonymous, nil
}

// senders decodes a set of senders; the zero value: it is another kind.
func (a attributes) senders() Set {
	timeout, _ := a.long(unix.NFTA_SET_TIMEOUT) // milliseconds
	kind := a.number(unix.NFTA_SET_KEY_TYPE)
	flow := flowType()
	ports := kind == flow.GetNFTMagic()
	if a.number(unix.NFTA_SET_FLAGS) != unix.NFT_SET_EVAL|unix.NFT_SET_TIMEOUT ||
		!ports && kind != nftables.TypeIPAddr.GetNFTMagic() {
		return Set{}
	}
	size := decode(a[unix.NFTA_SET_DESC]).number(unix.NFTA_SET_DESC_SIZE)
	return Set{Name: a.string(unix.NFTA_SET_NAME), Senders: size, Ports: ports, Timeout: time.Duration(timeout) * time.Millisecond}
}

// element is an element of a set.
type element struct {
	key   []byte
	end   bool // of an interval
	other bool // has other attributes, such as a timeout
}

func (c *Conn) readElements(family Family, table, set string) ([]element, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETSETELEM, netlink.Dump,
		attr(unix.NFTA_SET_ELEM_LIST_TABLE, table), attr(unix.NFTA_SET_ELEM_LIST_SET, set))
	var elements []element
	for _, a := range answers {
		for _, e := range a.elements(unix.NFTA_SET_ELEM_LIST_ELEMENTS) {
			elements = append(elements, readElement(decode(e)))
		}
	}
	return elements, err
}

func readElement(a attributes) element {
	flags := a.number(unix.NFTA_SET_ELEM_FLAGS)
	e := element{
		key:   decode(a[unix.NFTA_SET_ELEM_KEY])[unix.NFTA_DATA_VALUE],
		end:   flags&unix.NFT_SET_ELEM_INTERVAL_END != 0,
		other: flags&^unix.NFT_SET_ELEM_INTERVAL_END != 0,
	}
	for typ := range a {
		switch typ {
		case unix.NFTA_SET_ELEM_KEY, unix.NFTA_SET_ELEM_FLAGS:
		case unix.NFTA_SET_ELEM_USERDATA: // of nft: comments, and the flag of open intervals
		default:
			e.other = true
		}
	}
	return e
}

// readAnonymous returns the replacement of an anonymous set in canonical rules.
func readAnonymous(flags uint32, elements []element) string {
	var members []byte
	words := make([]string, 0, len(elements))
	ours := flags == unix.NFT_SET_ANONYMOUS|unix.NFT_SET_CONSTANT
	for _, e := range elements {
		ours = ours && len(e.key) == 1 && !e.end && !e.other
		members = append(members, e.key...)
		words = append(words, fmt.Sprintf("%x", e.key))
	}
	if !ours {
		return fmt.Sprintf("{flags %x: %s}", flags, strings.Join(words, " "))
	}
	return anonymousText(members)
}

// readSet returns a named set. Foreign is set if it is not a set of prefixes.
func readSet(name string, flags, kind uint32, elements []element) Set {
	s := Set{Name: name, Hosts: flags == 0}
	if !s.Hosts && flags != unix.NFT_SET_INTERVAL || kind != nftables.TypeIPAddr.GetNFTMagic() {
		s.Foreign = fmt.Sprintf("flags %#x, type %d", flags, kind)
		return s
	}
	bounds := make([]bound, 0, len(elements))
	for _, e := range elements {
		if len(e.key) != addressLen || e.other {
			s.Foreign = fmt.Sprintf("element %x with more than a key", e.key)
			return s
		}
		bounds = append(bounds, bound{at: binary.BigEndian.Uint32(e.key), end: e.end})
	}
	if s.Hosts {
		s.Elements = hosts(bounds)
		return s
	}
	var err error
	if s.Elements, err = prefixes(bounds); err != nil {
		s.Foreign = err.Error()
	}
	return s
}
