package nft

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// attr is a netlink attribute that names something.
func attr(typ uint16, name string) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: append([]byte(name), 0)}
}

// request sends a request about tables of a family and returns the attributes of the answer's messages.
func (c *Conn) request(family Family, message uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) ([]attributes, error) {
	const headerLen = 4 // struct nfgenmsg of linux/netfilter/nfnetlink.h: family, version, resource
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	answers, err := c.sock.Execute(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | message),
			Flags: netlink.Request | flags,
		},
		Data: append([]byte{byte(family.number()), unix.NFNETLINK_V0, 0, 0}, data...),
	})
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
		if all[i], err = decode(a.Data[headerLen:]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// errInterrupted is the answer to a dump during which something changed.
var errInterrupted = errors.New("dump interrupted by a change")

// generation returns the number of the kernel's current rule set: each transaction makes a new one.
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

// consistent calls read until no transaction came between its dumps, and returns the generation that was read.
// With the error of a read it does the same: what was listed can be gone a moment later.
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

// settle waits for the end of a transaction that the kernel is committing, with an empty one, which has to wait
// for its turn and changes nothing. Without it the generation's number says too little: nf_tables_commit of
// nf_tables_api.c counts it up shortly before or after, by version, it makes the new rules visible, and dumps go
// on meanwhile. Between two calls of settle no transaction becomes visible whose number does not come between
// the readings of the number around them.
func (c *Conn) settle() error {
	message := func(typ netlink.HeaderType) netlink.Message {
		return netlink.Message{
			Header: netlink.Header{Type: typ, Flags: netlink.Request},
			Data:   []byte{unix.NFPROTO_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES},
		}
	}
	_, err := c.sock.SendMessages([]netlink.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN), message(unix.NFNL_MSG_BATCH_END),
	})
	return err
}
