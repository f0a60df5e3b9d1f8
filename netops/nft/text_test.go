package nft

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

// everything returns a table with every expression of the package, in every form.
func everything() Table {
	p := netip.MustParsePrefix
	return Table{
		Name: "everything",
		Sets: []Set{
			NewSet("empty"),
			NewSet("one", parsed.Prefixes("10.0.0.1/32")...),
			NewSet("any", parsed.Prefixes("0.0.0.0/0")...),
			{Name: "hosts", Hosts: true, Elements: parsed.Prefixes("0.0.0.0/32", "10.0.0.1/32", "255.255.255.255/32")},
			{Name: "nohosts", Hosts: true},
			{Name: "senders", Senders: 4096, Timeout: time.Minute},
			{Name: "flows", Senders: 256, Ports: true, Timeout: 5 * time.Minute},
			NewSet("ends", parsed.Prefixes("0.0.0.0/32", "10.0.0.0/24", "10.0.1.0/24", "255.255.255.255/32")...),
		},
		Chains: []Chain{
			{Name: "called", Rules: []Rule{{Return()}, {Counter()}}},
			{Name: "filter", Hook: &Hook{Type: "filter", Point: "forward", Drop: true}, Rules: filterRules()},
			{
				Name: "marks", Hook: &Hook{Type: "route", Point: "output", Priority: -150},
				Rules: []Rule{
					{Mark(0x4c), SetMark(0)},
					{CTMark(0), SetCTMark(0x80000001)},
				},
			},
			{
				Name: "raw", Hook: &Hook{Type: "filter", Point: "prerouting", Priority: -300},
				Rules: []Rule{{UDPDPort(6091), NoTrack()}},
			},
			{
				Name: "destination", Hook: &Hook{Type: "nat", Point: "prerouting", Priority: -100},
				Rules: []Rule{
					{UDPDPort(51840), UDPBegins("LQNE"), DNATPort(6092)},
					{DAddr(p("10.9.0.2/32")), DNAT(netip.MustParseAddr("198.51.100.7"))},
				},
			},
			{
				Name: "source", Hook: &Hook{Type: "nat", Point: "postrouting", Priority: 80},
				Rules: []Rule{
					{OIf("eth0"), SNAT(netip.MustParseAddr("10.80.0.1"))},
					{SNATKeep()},
				},
			},
			{
				Name: "rewrite", Hook: &Hook{Type: "filter", Point: "postrouting", Priority: 110},
				Rules: []Rule{
					{ICMPType(3, 11), SetSAddrPrefix(p("10.70.0.0/16"))},
					{SetSAddrPrefix(p("10.70.252.0/22"))},
					{DAddr(p("10.9.0.0/16")), SetDAddrPrefix(p("10.1.0.0/16")), Goto("called")},
					{SetDAddrPrefix(p("10.1.0.1/32"))},
					{TCPSyn(), ClampMSS(1360)},
				},
			},
			{
				Name: quotedChain, Hook: &Hook{Type: "filter", Point: "prerouting", Priority: -300},
				Rules: []Rule{
					{ICMPType(3), QuotedSAddr(p("10.9.0.0/16")), SetQuotedSAddrPrefix(p("10.1.0.0/16"))},
					{QuotedDAddr(p("10.9.8.0/23")), SetQuotedDAddrPrefix(p("10.1.8.0/23"))},
					{QuotedSAddr(p("0.0.0.0/0")), QuotedDAddr(p("10.9.0.1/32")), SetSAddrQuoted()},
				},
			},
		},
	}
}

// quotedChain has the rules that nft(8) can print but not parse.
const quotedChain = "quoted"

func filterRules() []Rule {
	p := netip.MustParsePrefix
	return []Rule{
		{IIf("lqn-overlay"), OIf("lqn-tunnel"), Accept()},
		{IIfNot("a.name-of_15chr"), Counter(), Drop()},
		{IIfPrefix("lqn-"), OIfPrefix("v"), Accept()},
		{IIfGroup(19457), OIfGroup(1), Accept()},
		{IIfGroupNot(0x4c02), OIfGroupNot(1<<32 - 1), Counter(), Drop()},
		{SAddr(p("10.0.0.0/8")), DAddr(p("10.1.2.3/32"))},
		{DAddr(p("10.1.2.0/23")), SAddrNot(p("10.1.2.0/24"))},
		{DAddrNot(p("10.1.2.3/32")), Fragment(), Counter(), Drop()},
		{Options(), Accept()},
		{SAddr(p("0.0.0.0/0")), DAddr(p("128.0.0.0/1"))},
		{SAddrIn("one"), DAddrIn("any")},
		{SAddrIn("hosts"), DAddrIn("nohosts")},
		{SAddrIn("ends"), DAddrIn("empty"), Jump("called")},
		{Protocol(UDP)},
		{Protocol(ICMP), Drop()},
		{Protocol(253), Drop()},
		{Protocol(TCP), SAddr(p("10.1.2.3/32")), TCPDPort(10250)},
		{UDPDPort(53), Accept()},
		{UDPSPort(51840), Accept()},
		{UDPDPort(6091), OverlayID(0xabcdef), Accept()},
		{OverlayID(1), Accept()},
		{OverlayID(1), UDPDPort(1)},
		{UDPBegins("LQNE"), UDPDPort(1)},
		{ICMPType(8)},
		{ICMPType(200, 0, 3, 11, 12, 3)},
		{CTState(New)},
		{CTState(Established, Related), Accept()},
		{CTState(Untracked, Invalid, New)},
		{CTDirection(Original)},
		{CTTranslated(), Drop()},
		{Limit(1000, 200), Accept()},
		{Meter("senders", 100, 20), Accept()},
		{UDPDPort(6091), InnerDAddr(netip.MustParseAddr("10.80.128.1")), Meter("senders", 1, 1)},
		{UDPDPort(6091), InnerSAddr(netip.MustParsePrefix("10.80.0.0/17")), Accept()},
		{UpdateDAddr("senders"), Counter()},
		{UDPSPort(51840), UpdateDFlow("flows")},
		{FlowIn("flows"), Accept()},
		{UDPDPort(51840), SAddrIn("senders"), MeterFlow("flows", 10, 20), Limit(1000, 20000), Accept()},
		{UDPSPort(51840), UDPBegins("\x03\x00\x00\x00"), Accept()},
		{CTDirection(Reply), Counter()},
	}
}

func TestTableText(t *testing.T) {
	text := everything().String()
	golden.Check(t, "everything.nft.golden", text)
	newNamespace(t).Feed(text, "nft", "--check", "-f", "-")
	if got := (Table{}).String(); got != "" {
		t.Errorf("text of no table: %q", got)
	}
}

// TestInvalid: Diff rejects invalid tables with the position of the error, and Apply does nothing.
func TestInvalid(t *testing.T) {
	chain := func(rules ...Rule) Table {
		return Table{Name: "t", Chains: []Chain{{Name: "c", Rules: rules}}}
	}
	set := func(texts ...string) Table {
		return Table{Name: "t", Sets: []Set{{Name: "s", Elements: parsed.Prefixes(texts...)}}}
	}
	hook := func(h Hook) Table { return Table{Name: "t", Chains: []Chain{{Name: "c", Hook: &h}}} }
	v6 := netip.MustParsePrefix("fd00::/8")
	tests := []struct {
		want  string
		table Table
	}{
		{"table a b: not a name", Table{Name: "a b"}},
		{"set 1s: not a name", Table{Name: "t", Sets: []Set{{Name: "1s"}}}},
		{"set s: given twice", Table{Name: "t", Sets: []Set{{Name: "s"}, {Name: "s"}}}},
		{"set s: 10.0.0.0/8 does not follow 11.0.0.0/8", set("11.0.0.0/8", "10.0.0.0/8")},
		{"set s: 10.1.0.0/16 does not follow 10.0.0.0/8", set("10.0.0.0/8", "10.1.0.0/16")},
		{"set s: 10.0.0.0/31 is not a single", Table{Name: "t", Sets: []Set{{Name: "s", Hosts: true, Elements: parsed.Prefixes("10.0.0.0/31")}}}},
		{"set s: 10.0.0.1/8 has host bits", set("10.0.0.1/8")},
		{`set s: "fd00::/8" is not an IPv4 prefix`, set("fd00::/8")},
		{"chain c: given twice", Table{Name: "t", Chains: []Chain{{Name: "c"}, {Name: "c"}}}},
		{`chain c: no hook "ingress"`, hook(Hook{Type: "filter", Point: "ingress"})},
		{`chain c: no chain type ""`, hook(Hook{Point: "input"})},
		{"chain c: rule 2: ip saddr @s: no such set", chain(Rule{}, Rule{SAddrIn("s")})},
		{"chain c: rule 1: jump d: no such chain", chain(Rule{Jump("d")})},
		{`chain c: rule 1: ip saddr fd00::/8: "fd00::/8" is not`, chain(Rule{SAddr(v6)})},
		{"is not an IPv4 prefix", chain(Rule{DAddr(netip.Prefix{})})},
		{"is not an IPv4 prefix", chain(Rule{SetSAddrPrefix(v6)})},
		{"is not an IPv4 prefix", chain(Rule{SetSAddrPrefix(v6)})},
		{"snat to ::1: not an IPv4 address", chain(Rule{SNAT(netip.IPv6Loopback())})},
		{"dnat to ::1: not an IPv4 address", chain(Rule{DNAT(netip.IPv6Loopback())})},
		{"not an interface name", chain(Rule{IIf("")})},
		{"not an interface name", chain(Rule{IIfNot("a*")})},
		{"not an interface name", chain(Rule{OIf("a name of 16 chr")})},
		{"not an interface name", chain(Rule{IIfPrefix("")})},
		{"not an interface name", chain(Rule{OIfPrefix("a*")})},
		{"iifgroup 0: every interface", chain(Rule{IIfGroup(0)})},
		{"oifgroup != 0: every interface", chain(Rule{OIfGroupNot(0)})},
		{"@th,96,24 0x1000000: a virtual network has 24 bits", chain(Rule{OverlayID(1 << 24)})},
		{"meta l4proto 0: not a transport protocol", chain(Rule{Protocol(0)})},
		{"tcp dport 1: the rule matches protocol udp already", chain(Rule{UDPDPort(2), TCPDPort(1)})},
		{"no type given", chain(Rule{ICMPType()})},
		{"0x0 is not a set of states", chain(Rule{CTState()})},
		{"0x100 is not a set of states", chain(Rule{CTState(0x100)})},
		{"ct direction : neither", chain(Rule{CTDirection(2)})},
		{"table t: family inet", Table{Family: Inet, Name: "t"}},
		{"table t: family ip6 with 1 sets", Table{Family: IP6, Name: "t", Sets: []Set{{Name: "s"}}}},
		{"table t: dormant", Table{Name: "t", Dormant: true}},
		{"set s: x: only for observed sets", Table{Name: "t", Sets: []Set{{Name: "s", Foreign: "x"}}}},
		{"only sets of senders have ports", Table{Name: "t", Sets: []Set{{Name: "s", Ports: true}}}},
		{"filled by the kernel alone", Table{Name: "t", Sets: []Set{{Name: "s", Senders: 1, Hosts: true}}}},
		{"timeout 0s: want minutes", Table{Name: "t", Sets: []Set{{Name: "s", Senders: 1}}}},
		{"cannot be written", chain(Rule{{text: "[foreign]", observed: "foreign"}})},
	}
	for _, test := range tests {
		plan := Diff(Table{}, test.table)
		switch err := plan.Err(); {
		case err == nil:
			t.Errorf("%s: no error", test.want)
		case !strings.Contains(err.Error(), test.want):
			t.Errorf("%v, want %s", err, test.want)
		case plan.Empty() || !strings.HasPrefix(plan.String(), "# impossible: "):
			t.Errorf("plan of an impossible table: %s", plan)
		}
	}
}
