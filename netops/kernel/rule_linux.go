package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// markedRule is a rule with its protocol. Only foreign rules have the fields after the protocol.
type markedRule struct {
	netops.Rule
	protocol uint8
	not      bool   // matches packets that the selectors do not match
	target   int    // priority of the rule to which a goto leads; 0: none
	suppress uint32 // ignores routes with shorter prefixes; 0: none

	least, most flow // selected flows, by fields that are not zero; they differ only in ports
}

// takes reports whether the rule applies to a packet of a flow. Selectors by user and outgoing link are ignored.
func (r markedRule) takes(p netops.Packet, of flow) bool {
	in := func(value, least, most uint16) bool { return most == 0 || least <= value && value <= most }
	is := func(value, want uint8) bool { return want == 0 || value == want }
	return r.not != (r.Selects(p) && is(of.tos, r.least.tos) && is(of.protocol, r.least.protocol) &&
		in(of.from, r.least.from, r.most.from) && in(of.to, r.least.to, r.most.to))
}

// kernelRule is the rule that the kernel creates in a new namespace.
var kernelRule = markedRule{Rule: netops.Rule{Table: netops.LocalTable}, protocol: unix.RTPROT_KERNEL}

// fields returns the attributes of a rule. from and to are the addresses of its ranges, mask the significant bits of a
// mark.
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

// ruleActions are the actions without a table.
var ruleActions = map[uint8]netops.RouteType{nl.FR_ACT_BLACKHOLE: netops.Blackhole, nl.FR_ACT_UNREACHABLE: netops.Unreachable, nl.FR_ACT_PROHIBIT: netops.Prohibit}

// changeRule adds a rule after those of its priority, or deletes the first rule with its selectors. NLM_F_EXCL, which
// the library uses, is not set: the kernel would reject a rule that differs from an existing one only by an additional
// selector.
func (s *routeSocket) changeRule(op netops.Op, r markedRule) error {
	// A fib_rule_hdr has the layout of a rtmsg; its type is the action.
	header := unix.RtMsg{
		Family: unix.AF_INET, Type: nl.FR_ACT_TO_TBL, Src_len: uint8(max(r.From.Bits(), 0)), Dst_len: uint8(max(r.To.Bits(), 0)),
	}
	from, to, mask := r.From.Addr(), r.To.Addr(), uint32(0)
	if r.Mark != 0 {
		mask = ^mask // all bits
	}
	return s.execute(changing(op, unix.RTM_NEWRULE, 0, header, r.fields(&from, &to, &mask)...))
}

// changeKernelRule adds the kernel's rule, or deletes it: RTPROT_UNSPEC in a deletion matches any protocol.
func (s *routeSocket) changeKernelRule(op netops.Op) error {
	rule := kernelRule
	if op == netops.Remove {
		rule.protocol = unix.RTPROT_UNSPEC
	}
	return s.changeRule(op, rule)
}

// rules reads our rules, and reports whether the kernel's rule for the local table was moved by us. Other programs also
// move it and add their own rule.
func (s *routeSocket) rules() (ours []netops.Rule, localMoved bool, err error) {
	all, err := s.allRules()
	kernels := false
	for _, r := range all {
		if r.protocol == netops.Protocol {
			ours = append(ours, r.Rule)
		}
		localMoved = localMoved || r == markedRule{Rule: netops.MovedLocalRule, protocol: netops.Protocol}
		kernels = kernels || r.Rule == kernelRule.Rule
	}
	return ours, localMoved && !kernels, err
}

// allRules reads all rules, in the order in which the kernel evaluates them.
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
	var dscp uint8
	var fromPorts, toPorts []byte
	const fraDSCP = 25 // of linux/fib_rules.h: the upper six bits of the type of service
	err = unpack(data, &header, append(r.fields(&from, &to, &mask), optional(nl.FRA_IP_PROTO, &r.least.protocol), optional(fraDSCP, &dscp),
		optional(nl.FRA_SPORT_RANGE, &fromPorts), optional(nl.FRA_DPORT_RANGE, &toPorts))...)
	r.least.tos = header.Tos | dscp<<2
	r.least.from, r.most.from = portRange(fromPorts)
	r.least.to, r.most.to = portRange(toPorts)
	r.From, r.To = netip.PrefixFrom(from, int(header.Src_len)), netip.PrefixFrom(to, int(header.Dst_len))
	const invert = 2 // FIB_RULE_INVERT of linux/fib_rules.h
	r.not = header.Flags&invert != 0
	r.suppress++ // the kernel reports the longest ignored prefix, or -1 for none
	r.Action = string(ruleActions[header.Type])
	if r.target != 0 {
		r.Action = fmt.Sprintf("goto %d", r.target)
	}
	return r, err
}

// portRange decodes a fib_rule_port_range of linux/fib_rules.h; without bytes it is empty.
func portRange(b []byte) (first, last uint16) {
	if len(b) < 4 {
		return 0, 0
	}
	return binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint16(b[2:])
}
