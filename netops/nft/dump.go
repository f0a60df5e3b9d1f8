package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// attributes are the attributes of one object, by type.
type attributes map[uint16][]byte

// decode reads attributes, without their flags (nested, byte order). The kernel's own are well-formed. Malformed ones
// decode to none, which differs from all desired objects.
func decode(b []byte) attributes {
	const typeMask = 0x3fff
	list, _ := netlink.UnmarshalAttributes(b)
	a := make(attributes, len(list))
	for _, attr := range list {
		a[attr.Type&typeMask] = attr.Data
	}
	return a
}

// number returns a number, or 0 if it is missing.
func (a attributes) number(typ uint16) uint32 {
	if b := a[typ]; len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// long returns a 64-bit number, and whether it exists.
func (a attributes) long(typ uint16) (uint64, bool) {
	b := a[typ]
	if len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

func (a attributes) string(typ uint16) string { return cString(a[typ]) }

// elements returns the elements of a list.
func (a attributes) elements(typ uint16) [][]byte {
	list, _ := netlink.UnmarshalAttributes(a[typ])
	elements := make([][]byte, len(list))
	for i, e := range list {
		elements[i] = e.Data
	}
	return elements
}

// cString returns a string of the kernel without its terminating NUL.
func cString(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// attr returns a netlink attribute with a name.
func attr(typ uint16, name string) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: append([]byte(name), 0)}
}

// request sends a request for tables of a family and returns the attributes of the replies.
func (c *Conn) request(family Family, message uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) ([]attributes, error) {
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	answers, err := c.sock.Execute(nfMessage(unix.NFNL_SUBSYS_NFTABLES<<8|message, flags, byte(family.number()), 0, data))
	if err != nil {
		return nil, err
	}
	all := make([]attributes, len(answers))
	for i, a := range answers {
		if a.Header.Flags&netlink.DumpInterrupted != 0 {
			return nil, errInterrupted
		}
		if len(a.Data) < headerLen {
			return nil, fmt.Errorf("message %#x of %d bytes", a.Header.Type, len(a.Data))
		}
		all[i] = decode(a.Data[headerLen:])
	}
	return all, nil
}

// headerLen is the length of struct nfgenmsg of linux/netfilter/nfnetlink.h: family, version, resource.
const headerLen = 4

func nfMessage(typ uint16, flags netlink.HeaderFlags, family, resource byte, attrs []byte) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | flags},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, resource}, attrs...),
	}
}

// sendBatch sends a transaction.
func (c *Conn) sendBatch(messages ...netlink.Message) error {
	edge := func(typ uint16) []netlink.Message {
		return []netlink.Message{nfMessage(typ, 0, unix.NFPROTO_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)}
	}
	_, err := c.sock.SendMessages(slices.Concat(edge(unix.NFNL_MSG_BATCH_BEGIN), messages, edge(unix.NFNL_MSG_BATCH_END)))
	return err
}

// errInterrupted means that a table changed during a dump.
var errInterrupted = errors.New("dump interrupted by a change")

// rules returns the rules of a table, or of one of its chains, also if the kernel dumps others as well.
func (c *Conn) rules(family Family, table, chain string) ([]attributes, error) {
	filter := []netlink.Attribute{attr(unix.NFTA_RULE_TABLE, table)}
	if chain != "" {
		filter = append(filter, attr(unix.NFTA_RULE_CHAIN, chain))
	}
	answers, err := c.request(family, unix.NFT_MSG_GETRULE, netlink.Dump, filter...)
	return slices.DeleteFunc(answers, func(a attributes) bool {
		return a.string(unix.NFTA_RULE_TABLE) != table || chain != "" && a.string(unix.NFTA_RULE_CHAIN) != chain
	}), err
}

// generation returns the number of the kernel's current ruleset. Each transaction increments it.
func (c *Conn) generation() (uint32, error) {
	answers, err := c.request(IP, unix.NFT_MSG_GETGEN, 0)
	if err != nil {
		return 0, err
	}
	for _, a := range answers {
		if len(a[unix.NFTA_GEN_ID]) == 4 {
			return a.number(unix.NFTA_GEN_ID), nil
		}
	}
	return 0, errors.New("generation missing in the kernel's answer")
}

// consistent repeats read until no transaction interfered with its dumps, and returns the generation that was read.
// Errors of read are repeated as well, because a listed object may be deleted a moment later.
func (c *Conn) consistent(read func() error) (uint32, error) {
	const attempts = 20
	for range attempts {
		before, err := c.generation()
		if err != nil {
			return 0, err
		}
		if err := c.settle(); err != nil {
			return 0, err
		}
		result := read()
		if err := c.settle(); err != nil {
			return 0, err
		}
		after, err := c.generation()
		if err != nil {
			return 0, err
		}
		if before == after && !errors.Is(result, errInterrupted) {
			return after, result
		}
	}
	return 0, fmt.Errorf("tables changed during each of %d readings", attempts)
}

// settle waits for a transaction that the kernel is committing, by an empty one, which waits for its turn and changes
// nothing. The generation alone is not enough: nf_tables_commit of nf_tables_api.c increments it shortly before or
// after it makes the new rules visible, depending on the version, while dumps continue. A transaction that becomes
// visible between two calls of settle changes the generation between the reads around them.
func (c *Conn) settle() error { return c.sendBatch() }
