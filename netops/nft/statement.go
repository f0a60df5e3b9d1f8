package nft

import (
	"fmt"
	"net/netip"
)

// Accept ends the chain of this hook: the packet goes on to chains of higher priority number.
func Accept() Expr { return Expr{text: "accept"} }

// Drop discards the packet.
func Drop() Expr { return Expr{text: "drop"} }

// Return goes back to the calling chain; in a base chain the policy decides.
func Return() Expr { return Expr{text: "return"} }

// Jump goes to the named chain and comes back at its end.
func Jump(chain string) Expr { return Expr{text: "jump " + chain} }

// Counter counts packets and bytes. Its value takes no part in comparisons.
func Counter() Expr { return Expr{text: "counter"} }

// Comment is a text for those who read the rules; at most 127 bytes. It goes last in a rule.
func Comment(text string) Expr { return Expr{text: fmt.Sprintf("comment %q", text)} }

// SetMark sets the packet's mark.
func SetMark(mark uint32) Expr { return Expr{text: fmt.Sprintf("meta mark set 0x%08x", mark)} }

// SetCTMark sets the connection's mark.
func SetCTMark(mark uint32) Expr { return Expr{text: fmt.Sprintf("ct mark set 0x%08x", mark)} }

// NoTrack keeps the packet out of connection tracking, and so out of NAT.
func NoTrack() Expr { return Expr{text: "notrack"} }

// SNAT translates the source to the address.
func SNAT(a netip.Addr) Expr { return Expr{text: "snat to " + a.String()} }

// SNATKeep binds the source to itself: no later nat chain can translate it.
func SNATKeep() Expr { return Expr{text: "snat to ip saddr"} }

// SNATPrefix translates the source 1:1 into the prefix, host bits kept.
func SNATPrefix(p netip.Prefix) Expr { return Expr{text: "snat ip prefix to " + p.String()} }

// DNATPrefix translates the destination 1:1 into the prefix, host bits kept.
func DNATPrefix(p netip.Prefix) Expr { return Expr{text: "dnat ip prefix to " + p.String()} }

// SetSAddrPrefix rewrites the network bits of the source without connection tracking, host bits kept.
func SetSAddrPrefix(p netip.Prefix) Expr { return Expr{text: "ip saddr set " + p.String()} }

// ClampMSS lowers the TCP maximum segment size, in bytes, of packets that open a connection.
func ClampMSS(size uint16) Expr { return Expr{text: fmt.Sprintf("tcp option maxseg size set %d", size)} }
