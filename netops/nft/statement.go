package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Accept ends this chain and those that jumped to it. Chains of other tables, and of later priorities, still process
// the packet.
func Accept() Expr { return verdict("accept", expr.VerdictAccept, "") }

// Drop discards the packet.
func Drop() Expr { return verdict("drop", expr.VerdictDrop, "") }

// Return returns to the chain that jumped here; in a chain with a hook, the policy applies.
func Return() Expr { return verdict("return", expr.VerdictReturn, "") }

// Jump continues with the named chain, which has no hook, and returns at its end.
func Jump(chain string) Expr { return verdict("jump ", expr.VerdictJump, chain) }

// Goto continues with the named chain, which has no hook, and does not return: its end is also the end of this chain.
func Goto(chain string) Expr { return verdict("goto ", expr.VerdictGoto, chain) }

func verdict(word string, kind expr.VerdictKind, chain string) Expr {
	return Expr{text: word + chain, chain: chain, code: []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}}
}

// Counter counts packets and bytes. Comparisons ignore its values.
func Counter() Expr { return Expr{text: "counter", code: []expr.Any{&expr.Counter{}}} }

// Limit matches packets up to a rate per second and a burst; neither may be 0.
func Limit(perSecond, burst uint32) Expr {
	text := fmt.Sprintf("limit rate %d/second burst %d packets", perSecond, burst)
	limit := expr.Limit{Type: expr.LimitTypePkts, Rate: uint64(perSecond), Unit: expr.LimitTimeSecond, Burst: burst}
	return Expr{text: text, code: []expr.Any{&limit}}.unless(perSecond == 0 || burst == 0, "would match nothing, or anything")
}

// Meter matches packets up to a rate per second and a burst per source address; neither may be 0. The set has Senders.
// If it is full, packets of further addresses do not match.
func Meter(set string, perSecond, burst uint32) Expr {
	return source.whole().meter(set, Limit(perSecond, burst))
}

// MeterFlow is Meter for UDP packets, per source address and port. The set has Ports.
func MeterFlow(set string, perSecond, burst uint32) Expr {
	return source.withPort("udp sport", sportOffset).meter(set, Limit(perSecond, burst))
}

// UpdateDAddr adds the destination address to a set of Senders, or renews it there. If the set is full, further packets
// do not match.
func UpdateDAddr(set string) Expr { return destination.whole().update(set) }

// UpdateDFlow is UpdateDAddr for UDP packets, with the destination port. The set has Ports.
func UpdateDFlow(set string) Expr { return destination.withPort("udp dport", dportOffset).update(set) }

// UpdateSFlow adds the source address and port of a UDP packet, as UpdateDFlow does.
func UpdateSFlow(set string) Expr { return source.withPort("udp sport", sportOffset).update(set) }

// FlowIn matches UDP packets whose source address and port are in the named set, which has Ports.
func FlowIn(set string) Expr {
	k := source.withPort("udp sport", sportOffset)
	return k.expr(set, fmt.Sprintf("%s @%s", k.word, set), &expr.Lookup{SourceRegister: matchReg, SetName: set})
}

// key is the content of an element of a set of Senders.
type key struct {
	word string // in nft text
	load []expr.Any
	port bool // of UDP
}

func (a address) whole() key { return key{word: a.word, load: []expr.Any{a.read()}} }

// withPort is the address and a port, each in a register of four bytes.
func (a address) withPort(word string, offset uint32) key {
	port := &expr.Payload{DestRegister: unix.NFT_REG32_01, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: portLen}
	return key{word: a.word + " . " + word, load: []expr.Any{a.read(), port}, port: true}
}

func (k key) expr(set, text string, use expr.Any) Expr {
	e := Expr{text: text, set: set, code: append(k.load, use)}
	if k.port {
		e.proto, e.implies = UDP, true
	}
	return e
}

// update adds the key to a set, or renews its timeout.
func (k key) update(set string, limits ...expr.Any) Expr {
	return k.expr(set, fmt.Sprintf("update @%s { %s }", set, k.word), &expr.Dynset{
		SrcRegKey: matchReg, SetName: set, Operation: uint32(unix.NFT_DYNSET_OP_UPDATE), Exprs: limits,
	})
}

// meter is update with a limit for each element.
func (k key) meter(set string, limit Expr) Expr {
	if limit.err != nil {
		return limit
	}
	e := k.update(set, limit.code...)
	e.text = fmt.Sprintf("update @%s { %s %s }", set, k.word, limit.text)
	return e
}

// SetMark sets the packet's mark.
func SetMark(mark uint32) Expr {
	return Expr{text: fmt.Sprintf("meta mark set 0x%08x", mark), code: []expr.Any{
		value(native(mark)),
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: matchReg},
	}}
}

// ClampMSS lowers the maximum segment size, in bytes, that a TCP packet announces. A smaller one is kept: the kernel
// never raises it. The rule should match TCPSyn.
func ClampMSS(size uint16) Expr {
	const (
		maxseg = 2 // the option's kind, RFC 9293
		offset = 2 // of its value, after kind and length
	)
	return Expr{text: fmt.Sprintf("tcp option maxseg size set %d", size), code: []expr.Any{
		value(binary.BigEndian.AppendUint16(nil, size)),
		&expr.Exthdr{SourceRegister: matchReg, Type: maxseg, Offset: offset, Len: 2, Op: unix.NFT_EXTHDR_OP_TCPOPT},
	}}
}
