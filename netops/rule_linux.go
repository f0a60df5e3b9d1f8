package netops

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// markedRule is a rule and who made it. What follows the protocol, only rules of others have.
type markedRule struct {
	Rule
	protocol uint8
	not      bool   // selects what the selectors do not
	target   int    // priority of the rule at which the search goes on; 0: none
	suppress uint32 // routes with prefixes that are shorter than this do not count; 0: all do
}

// kernelRule is the rule that the kernel makes in a new namespace.
var kernelRule = markedRule{Rule: Rule{Table: localTable}, protocol: unix.RTPROT_KERNEL}

// fields are the attributes of a rule: from and to are the addresses of its ranges, mask the bits of a mark that count.
func (r *markedRule) fields(from, to *netip.Addr, mask *uint32) []field {
	return []field{
		required(nl.FRA_PRIORITY, &r.Priority),
		optional(nl.FRA_TABLE, &r.Table),
		optional(nl.FRA_PROTOCOL, &r.protocol),
		optional(nl.FRA_SRC, from),
		optional(nl.FRA_DST, to),
		optional(nl.FRA_IIFNAME, &r.IIf),
		optional(nl.FRA_FWMARK, &r.Mark),
		optional(nl.FRA_FWMASK, mask),
		optional(nl.FRA_GOTO, &r.target),
		optional(nl.FRA_SUPPRESS_PREFIXLEN, &r.suppress),
	}
}

// ruleActions are those that lead to no table.
var ruleActions = map[uint8]RouteType{nl.FR_ACT_BLACKHOLE: Blackhole, nl.FR_ACT_UNREACHABLE: Unreachable, nl.FR_ACT_PROHIBIT: Prohibit}

// changeRule adds a rule after those of its priority, or deletes the first rule that has its selectors. The kernel is
// not asked whether it has the rule already (NLM_F_EXCL, as the library does): to it, one with a selector more is the
// same.
func (s *routeSocket) changeRule(op Op, r markedRule) error {
	// A fib_rule_hdr has the layout of a rtmsg; its type is the action.
	header := unix.RtMsg{
		Family: unix.AF_INET, Type: nl.FR_ACT_TO_TBL, Src_len: uint8(max(r.From.Bits(), 0)), Dst_len: uint8(max(r.To.Bits(), 0)),
	}
	from, to, mask := r.From.Addr(), r.To.Addr(), uint32(0)
	if r.Mark != 0 {
		mask = ^mask // every bit
	}
	return s.execute(changing(op, unix.RTM_NEWRULE, 0, header, r.fields(&from, &to, &mask)...))
}

// changeKernelRule makes the kernel's rule again, or deletes it, whoever made it: RTPROT_UNSPEC matches any protocol.
func (s *routeSocket) changeKernelRule(op Op) error {
	rule := kernelRule
	if op == Remove {
		rule.protocol = unix.RTPROT_UNSPEC
	}
	return s.changeRule(op, rule)
}

// rules reads our rules, and whether it was us who moved the kernel's rule for the local table: others do that
// too, with a rule of theirs in its place.
func (s *routeSocket) rules() (ours []Rule, localMoved bool, err error) {
	all, err := s.allRules()
	kernels := false
	for _, r := range all {
		if r.protocol == Protocol {
			ours = append(ours, r.Rule)
		}
		localMoved = localMoved || r == markedRule{Rule: movedLocalRule, protocol: Protocol}
		kernels = kernels || r.Rule == kernelRule.Rule
	}
	return ours, localMoved && !kernels, err
}

// allRules reads the rules of all, in the order in which the kernel asks them.
func (s *routeSocket) allRules() ([]markedRule, error) {
	request := message{kind: unix.RTM_GETRULE, header: unix.RtMsg{Family: unix.AF_INET}}
	return collect(s, request, func(data []byte) (markedRule, bool, error) {
		r, err := decodeRule(data)
		return r, true, err
	})
}

func decodeRule(data []byte) (r markedRule, err error) {
	var header unix.RtMsg
	var from, to netip.Addr
	var mask uint32
	err = unpack(data, &header, r.fields(&from, &to, &mask)...)
	r.From, r.To = netip.PrefixFrom(from, int(header.Src_len)), netip.PrefixFrom(to, int(header.Dst_len))
	const invert = 2 // FIB_RULE_INVERT of linux/fib_rules.h
	r.not = header.Flags&invert != 0
	r.suppress++ // the kernel says -1 where it is none, and the longest prefix that does not count
	r.Action = string(ruleActions[header.Type])
	if r.target != 0 {
		r.Action = fmt.Sprintf("goto %d", r.target)
	}
	return r, err
}
