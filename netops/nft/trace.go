package nft

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// Flow is the packets from one address to another. The ports are those of TCP and UDP.
type Flow struct {
	Protocol         Proto
	From, To         netip.Addr
	FromPort, ToPort uint16
}

// rule returns a rule that matches the packets of the flow.
func (f Flow) rule() Rule {
	r := Rule{SAddr(cidr.Single(f.From)), DAddr(cidr.Single(f.To))}
	if f.Protocol == ICMP {
		return append(r, Protocol(ICMP))
	}
	return append(r, matchPort(f.Protocol, "sport", sportOffset, f.FromPort), matchPort(f.Protocol, "dport", dportOffset, f.ToPort))
}

// traced enables kernel tracing of a packet.
func traced() Expr {
	return Expr{text: "meta nftrace set 1", code: []expr.Any{
		value([]byte{1}), &expr.Meta{Key: expr.MetaKeyNFTRACE, SourceRegister: true, Register: matchReg},
	}}
}

// Verdicts of a Step. Others are numbers.
const (
	VerdictAccept = "accept"
	VerdictDrop   = "drop"
)

// Step is a trace message of the kernel for a packet, at a rule that matches or at the end of a chain.
type Step struct {
	Packet   uint32 // trace id of the packet
	Table    string // with its family
	Chain    string
	Rule     uint64     // its handle; 0: the chain's policy
	Verdict  string     // "": evaluation continues in this chain or another
	From, To netip.Addr // only in the first step of each chain with a hook
	IIf, OIf uint32     // indexes of links; 0: none yet
}

// tableOwned is NFT_TABLE_F_OWNER of linux/netfilter/nf_tables.h: the table is deleted with the socket that created it.
const tableOwned = 2

// linger is the time that a trace continues after its end, for packets in flight.
const linger = 300 * time.Millisecond

// Trace enables kernel tracing for the packets of flows in the namespace of the calling thread, and calls see with each
// step until the context ends; ready is called first. It creates a table without verdicts. The first and last step of a
// packet have the name of that table. The kernel removes the table when the process exits or is killed (Linux 5.12; the
// kernels before return an error).
func Trace(ctx context.Context, table string, flows []Flow, ready func(), see func(Step)) (err error) {
	listener, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return fmt.Errorf("trace packets: %w", err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if err := errors.Join(listener.SetReadBuffer(bufferSize), listener.JoinGroup(unix.NFNLGRP_NFTRACE)); err != nil {
		return fmt.Errorf("trace packets: %w", err)
	}
	c, err := Open(-1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var rules []Rule
	const last = 1000
	for _, f := range flows {
		rules = append(rules, append(f.rule(), traced()))
	}
	// Before and after all other chains: packets that reach the end were not dropped.
	chain := func(point string, priority int, rules []Rule) Chain {
		return Chain{Name: point, Hook: &Hook{Type: "filter", Point: point, Priority: priority}, Rules: rules}
	}
	if err := c.createOwned(table); err != nil {
		return fmt.Errorf("make table %s: %w", table, err)
	}
	plan := Diff(Table{Name: table}, Table{Name: table, Chains: []Chain{
		chain("prerouting", -last, rules), chain("output", -last, rules), chain("input", last, nil), chain("postrouting", last, nil),
	}})
	if err := c.Apply(plan); err != nil {
		return err
	}
	ready()
	stop := context.AfterFunc(ctx, func() { _ = listener.SetReadDeadline(time.Now().Add(linger)) })
	defer stop()
	for {
		messages, err := listener.Receive()
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("trace packets: %w", err)
		}
		for _, m := range messages {
			if s, ok := readStep(m); ok {
				see(s)
			}
		}
	}
}

// createOwned creates a table that is deleted with the connection. The library does not support table flags.
func (c *Conn) createOwned(table string) error {
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
		attr(unix.NFTA_TABLE_NAME, table), {Type: unix.NFTA_TABLE_FLAGS, Data: binary.BigEndian.AppendUint32(nil, tableOwned)},
	})
	if err != nil {
		return err
	}
	const newTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
	if err := c.sendBatch(nfMessage(newTable, netlink.Create|netlink.Excl|netlink.Acknowledge, byte(IP.number()), 0, attrs)); err != nil {
		return err
	}
	_, err = c.sock.Receive()
	return err
}

// readStep decodes a message of the kernel; false: it is not a trace message.
func readStep(m netlink.Message) (s Step, ok bool) {
	if m.Header.Type != unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_TRACE || len(m.Data) < headerLen {
		return s, false
	}
	a := decode(m.Data[headerLen:])
	s = Step{
		Packet: a.number(unix.NFTA_TRACE_ID), Chain: a.string(unix.NFTA_TRACE_CHAIN),
		Table: familyName(m.Data[0]) + " " + a.string(unix.NFTA_TRACE_TABLE),
		IIf:   a.number(unix.NFTA_TRACE_IIF), OIf: a.number(unix.NFTA_TRACE_OIF),
	}
	s.Rule, _ = a.long(unix.NFTA_TRACE_RULE_HANDLE)
	verdict := decode(a[unix.NFTA_TRACE_VERDICT])
	if a.number(unix.NFTA_TRACE_TYPE) == unix.NFT_TRACETYPE_POLICY {
		s.Verdict = verdictText(int32(a.number(unix.NFTA_TRACE_POLICY)))
	} else if code := verdict[unix.NFTA_VERDICT_CODE]; len(code) == 4 {
		s.Verdict = verdictText(int32(binary.BigEndian.Uint32(code)))
	}
	if h := a[unix.NFTA_TRACE_NETWORK_HEADER]; len(h) >= daddrOffset+addressLen && h[0]>>4 == 4 {
		s.From, _ = netip.AddrFromSlice(h[saddrOffset : saddrOffset+addressLen])
		s.To, _ = netip.AddrFromSlice(h[daddrOffset : daddrOffset+addressLen])
	}
	return s, true
}

// verdictText returns a verdict that ends a chain with a hook, from linux/netfilter.h; "": other verdicts, which are
// negative, do not.
func verdictText(code int32) string {
	switch {
	case code < 0:
		return ""
	case code == 0: // NF_DROP
		return VerdictDrop
	case code == 1: // NF_ACCEPT
		return VerdictAccept
	}
	return fmt.Sprintf("verdict %d", code&0xff)
}

// familyName returns the name of a family in nft.
func familyName(number byte) string {
	return cmp.Or(map[byte]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_NETDEV: "netdev"}[number], "ip")
}
