package netops

import (
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// allBits is the mask of a mark of which every bit counts.
const allBits = 0xffffffff

// addRule adds a rule after those of its priority. The kernel is not asked whether it has the rule already
// (NLM_F_EXCL, as the library does): to it, one with a selector more is the same.
func (s *routeSocket) addRule(r markedRule) error {
	return s.execute(ruleMessage(unix.RTM_NEWRULE, raw.Create, r))
}

// deleteRule deletes the first rule that has the selectors of this one.
func (s *routeSocket) deleteRule(r markedRule) error {
	return s.execute(ruleMessage(unix.RTM_DELRULE, 0, r))
}

// markedRule is a rule and who made it.
type markedRule struct {
	Rule
	protocol uint8
}

// kernelRule is the rule that the kernel makes in a new namespace.
var kernelRule = markedRule{Rule: Rule{Table: localTable}, protocol: unix.RTPROT_KERNEL}

// anyKernelRule is the same rule by whomever: to a deletion, no protocol matches every one.
var anyKernelRule = markedRule{Rule: kernelRule.Rule, protocol: unix.RTPROT_UNSPEC}

func ruleMessage(kind uint16, flags raw.HeaderFlags, r markedRule) message {
	// A fib_rule_hdr has the layout of a rtmsg; its type is the action.
	header := unix.RtMsg{Family: unix.AF_INET, Type: nl.FR_ACT_TO_TBL}
	if r.From.IsValid() {
		header.Src_len = uint8(r.From.Bits())
	}
	if r.To.IsValid() {
		header.Dst_len = uint8(r.To.Bits())
	}
	return message{kind: kind, flags: flags, header: header, attrs: func(ae *raw.AttributeEncoder) {
		ae.Uint32(nl.FRA_PRIORITY, uint32(r.Priority))
		ae.Uint32(nl.FRA_TABLE, uint32(r.Table))
		ae.Uint8(nl.FRA_PROTOCOL, r.protocol)
		if r.From.IsValid() {
			ae.Bytes(nl.FRA_SRC, r.From.Addr().AsSlice())
		}
		if r.To.IsValid() {
			ae.Bytes(nl.FRA_DST, r.To.Addr().AsSlice())
		}
		if r.IIf != "" {
			ae.String(nl.FRA_IIFNAME, r.IIf)
		}
		if r.Mark != 0 {
			ae.Uint32(nl.FRA_FWMARK, r.Mark)
			ae.Uint32(nl.FRA_FWMASK, allBits)
		}
	}}
}

// rules reads our rules, and whether it was us who moved the kernel's rule for the local table: others do that
// too, with a rule of theirs in its place.
func (s *routeSocket) rules() (ours []Rule, localMoved bool, err error) {
	request := message{kind: unix.RTM_GETRULE, header: unix.RtMsg{Family: unix.AF_INET}}
	all, err := collect(s, request, func(data []byte) (markedRule, bool, error) {
		r, err := decodeRule(data)
		return r, true, err
	})
	kernels := false
	for _, r := range all {
		if r.protocol == Protocol {
			ours = append(ours, r.Rule)
		}
		localMoved = localMoved || r == markedRule{movedLocalRule, Protocol}
		kernels = kernels || r.Rule == kernelRule.Rule
	}
	return ours, localMoved && !kernels, err
}

func decodeRule(data []byte) (markedRule, error) {
	var header unix.RtMsg
	var r markedRule
	ad, err := split(data, &header)
	if err != nil {
		return r, err
	}
	for ad.Next() {
		switch ad.Type() {
		case nl.FRA_PRIORITY: // not there: 0
			r.Priority = int(ad.Uint32())
		case nl.FRA_TABLE:
			r.Table = int(ad.Uint32())
		case nl.FRA_PROTOCOL:
			r.protocol = ad.Uint8()
		case nl.FRA_SRC:
			r.From = prefixOf(ad.Bytes(), header.Src_len)
		case nl.FRA_DST:
			r.To = prefixOf(ad.Bytes(), header.Dst_len)
		case nl.FRA_IIFNAME:
			r.IIf = ad.String()
		case nl.FRA_FWMARK:
			r.Mark = ad.Uint32()
		}
	}
	return r, ad.Err()
}

// prefixOf is a prefix out of an address attribute and a header's length.
func prefixOf(addr []byte, bits uint8) netip.Prefix {
	a, _ := netip.AddrFromSlice(addr)
	return netip.PrefixFrom(a, int(bits))
}
