package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Accept ends this chain and those that led to it by a jump. Chains of other tables, and of a later priority,
// still see the packet.
func Accept() Expr { return verdict("accept", expr.VerdictAccept, "") }

// Drop discards the packet.
func Drop() Expr { return verdict("drop", expr.VerdictDrop, "") }

// Return goes back to the chain that jumped here; in a chain with a hook the policy decides.
func Return() Expr { return verdict("return", expr.VerdictReturn, "") }

// Jump goes to the named chain, which has no hook, and comes back at its end.
func Jump(chain string) Expr { return verdict("jump ", expr.VerdictJump, chain) }

// Goto goes to the named chain, which has no hook, and does not come back: where that ends, so does this one.
func Goto(chain string) Expr { return verdict("goto ", expr.VerdictGoto, chain) }

func verdict(word string, kind expr.VerdictKind, chain string) Expr {
	return Expr{text: word + chain, chain: chain, code: []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}}
}

// Counter counts packets and bytes. Its values take no part in comparisons.
func Counter() Expr { return Expr{text: "counter", code: []expr.Any{&expr.Counter{}}} }

// Limit matches as many packets a second in the long run, and as many at once; neither may be 0.
func Limit(perSecond, burst uint32) Expr {
	text := fmt.Sprintf("limit rate %d/second burst %d packets", perSecond, burst)
	limit := expr.Limit{Type: expr.LimitTypePkts, Rate: uint64(perSecond), Unit: expr.LimitTimeSecond, Burst: burst}
	return Expr{text: text, code: []expr.Any{&limit}}.unless(perSecond == 0 || burst == 0, "would match nothing, or anything")
}

// Meter matches as many packets a second of each source address, and as many at once; neither may be 0. The set has Senders.
// While it is full, packets of further addresses do not match.
func Meter(set string, perSecond, burst uint32) Expr {
	limit := Limit(perSecond, burst)
	if limit.err != nil {
		return limit
	}
	return Expr{text: fmt.Sprintf("update @%s { %s %s }", set, source.word, limit.text), set: set, code: []expr.Any{
		source.read(),
		&expr.Dynset{SrcRegKey: matchReg, SetName: set, Operation: uint32(unix.NFT_DYNSET_OP_UPDATE), Exprs: limit.code},
	}}
}

// SetMark sets the packet's mark.
func SetMark(mark uint32) Expr {
	return Expr{text: fmt.Sprintf("meta mark set 0x%08x", mark), code: []expr.Any{
		value(native(mark)),
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: matchReg},
	}}
}

// ClampMSS lowers the maximum segment size, in bytes, that a TCP packet announces. A smaller one stays: the
// kernel never raises it. The rule should match TCPSyn.
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
