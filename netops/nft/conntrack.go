package nft

import (
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
)

// State is a connection tracking state of a packet.
type State uint32

// The connection tracking states.
const (
	Invalid     = State(expr.CtStateBitINVALID)
	Established = State(expr.CtStateBitESTABLISHED)
	Related     = State(expr.CtStateBitRELATED)
	New         = State(expr.CtStateBitNEW)
	Untracked   = State(expr.CtStateBitUNTRACKED)
)

// CTState matches packets whose connection tracking state is any of the given.
func CTState(states ...State) Expr {
	names := []struct {
		State
		name string
	}{{Invalid, "invalid"}, {Established, "established"}, {Related, "related"}, {New, "new"}, {Untracked, "untracked"}}
	var given, known State
	for _, s := range states {
		given |= s
	}
	var words []string
	for _, n := range names {
		if given&n.State != 0 {
			words, known = append(words, n.name), known|n.State
		}
	}
	return Expr{text: "ct state " + strings.Join(words, ","), code: anyOf(ct(expr.CtKeySTATE), native(uint32(given)))}.
		unless(given == 0 || given != known, fmt.Sprintf("%#x is not a set of states", uint32(given)))
}

// CTTranslated matches packets of connections whose destination was translated (IPS_DST_NAT of
// linux/netfilter/nf_conntrack_common.h), in both directions.
func CTTranslated() Expr {
	const dstNAT = 1 << 5
	return Expr{text: "ct status dnat", code: anyOf(ct(expr.CtKeySTATUS), native(dstNAT))}
}

// CTMark matches the connection's mark.
func CTMark(mark uint32) Expr {
	return Expr{text: fmt.Sprintf("ct mark 0x%08x", mark), code: compare(ct(expr.CtKeyMARK), expr.CmpOpEq, native(mark))}
}

// Direction is a packet's direction within its connection.
type Direction uint8

// The directions: that of the connection's first packet, and the opposite one.
const (
	Original Direction = iota
	Reply
)

// CTDirection matches the packet's direction within its connection.
func CTDirection(d Direction) Expr {
	text := "ct direction " + map[Direction]string{Original: "original", Reply: "reply"}[d]
	return Expr{text: text, code: compare(ct(expr.CtKeyDIRECTION), expr.CmpOpEq, []byte{byte(d)})}.
		unless(d > Reply, "neither original nor reply")
}

// SetCTMark sets the connection's mark.
func SetCTMark(mark uint32) Expr {
	return Expr{text: fmt.Sprintf("ct mark set 0x%08x", mark), code: []expr.Any{
		value(native(mark)),
		&expr.Ct{Key: expr.CtKeyMARK, Register: matchReg, SourceRegister: true},
	}}
}

// NoTrack excludes the packet from connection tracking, and therefore from NAT.
func NoTrack() Expr { return Expr{text: "notrack", code: []expr.Any{&expr.Notrack{}}} }
