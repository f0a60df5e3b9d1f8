package nft

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// readSets returns the named sets of the table, and for each anonymous one what stands for it in rules.
func (c *Conn) readSets(family Family, table string) ([]Set, map[string]string, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETSET, netlink.Dump, attr(unix.NFTA_SET_TABLE, table))
	if err != nil {
		return nil, nil, err
	}
	var sets []Set
	anonymous := make(map[string]string)
	for _, a := range answers {
		name := a.string(unix.NFTA_SET_NAME)
		elements, err := c.readElements(family, table, name)
		if err != nil {
			return nil, nil, fmt.Errorf("set %s: %w", name, err)
		}
		if a.number(unix.NFTA_SET_FLAGS)&unix.NFT_SET_ANONYMOUS != 0 {
			anonymous[name] = readAnonymous(a, elements)
		} else {
			sets = append(sets, readSet(name, a, elements))
		}
	}
	return sets, anonymous, nil
}

// element is an element of a set.
type element struct {
	key   []byte
	end   bool // of an interval
	other bool // there is more to it, such as a timeout
}

func (c *Conn) readElements(family Family, table, set string) ([]element, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETSETELEM, netlink.Dump,
		attr(unix.NFTA_SET_ELEM_LIST_TABLE, table), attr(unix.NFTA_SET_ELEM_LIST_SET, set))
	if err != nil {
		return nil, err
	}
	var elements []element
	for _, a := range answers {
		list, err := netlink.UnmarshalAttributes(a[unix.NFTA_SET_ELEM_LIST_ELEMENTS])
		if err != nil {
			return nil, err
		}
		for _, item := range list {
			e, err := readElement(item.Data)
			if err != nil {
				return nil, err
			}
			elements = append(elements, e)
		}
	}
	return elements, nil
}

func readElement(b []byte) (element, error) {
	a, err := decode(b)
	if err != nil {
		return element{}, err
	}
	key, err := decode(a[unix.NFTA_SET_ELEM_KEY])
	if err != nil {
		return element{}, err
	}
	flags := a.number(unix.NFTA_SET_ELEM_FLAGS)
	e := element{
		key:   key[unix.NFTA_DATA_VALUE],
		end:   flags&unix.NFT_SET_ELEM_INTERVAL_END != 0,
		other: flags&^unix.NFT_SET_ELEM_INTERVAL_END != 0,
	}
	for typ := range a {
		switch typ {
		case unix.NFTA_SET_ELEM_KEY, unix.NFTA_SET_ELEM_FLAGS:
		case unix.NFTA_SET_ELEM_USERDATA: // nft's own: comments, and whether an interval is open at its end
		default:
			e.other = true
		}
	}
	return e, nil
}

// readAnonymous returns what stands for an anonymous set in canonical rules.
func readAnonymous(set attributes, elements []element) string {
	var members []byte
	words := make([]string, 0, len(elements))
	ours := set.number(unix.NFTA_SET_FLAGS) == unix.NFT_SET_ANONYMOUS|unix.NFT_SET_CONSTANT
	for _, e := range elements {
		ours = ours && len(e.key) == 1 && !e.end && !e.other
		members = append(members, e.key...)
		words = append(words, fmt.Sprintf("%x", e.key))
	}
	if !ours {
		return fmt.Sprintf("{flags %x: %s}", set.number(unix.NFTA_SET_FLAGS), strings.Join(words, " "))
	}
	return anonymousText(members)
}

// readSet returns a named set; Foreign where it is not one of prefixes.
func readSet(name string, set attributes, elements []element) Set {
	flags, kind := set.number(unix.NFTA_SET_FLAGS), set.number(unix.NFTA_SET_KEY_TYPE)
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
		s.Elements = hosts(elements)
		return s
	}
	var err error
	if s.Elements, err = prefixes(bounds); err != nil {
		s.Foreign = err.Error()
	}
	return s
}
