package netops

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// Crossing is what a node exchanges with a peer.
type Crossing struct {
	Peer  []netip.Prefix // ranges
	Pods  []netip.Addr   // of this node, that send
	Links []string       // to the peer's gateways
}

// Detours asks the kernel where the packets of crossings go. For each it returns how rules or routes of others take
// some of them off liqonet's path, or refuse them; "": they do not. A Watch tells of routes of others to the ranges
// that were asked for last.
//
// It asks for one address of each range and for both ends of each narrower prefix that a rule or route of others has
// which comes before liqonet's; as the node itself sends, as a pod does, and as those pods do to which such a rule
// applies. Of packets from the peer it asks whether they get to these pods. It sends nothing, and does not follow rules
// that select by marks, ports or users.
func (k *Kernel) Detours(crossings []Crossing) ([]string, error) {
	var ranges []netip.Prefix
	mark := uint32(0)
	for _, c := range crossings {
		ranges = append(ranges, c.Peer...)
		if len(c.Links) > 1 {
			mark = markArrival
		}
	}
	k.asked.Store(&ranges)
	found := make([]string, len(crossings))
	if len(crossings) == 0 {
		return found, nil
	}
	f, err := k.fib()
	if err != nil {
		return found, err
	}
	for i, c := range crossings {
		if found[i], err = f.detour(c, mark); err != nil {
			return found, err
		}
	}
	return found, nil
}

// before are the rules of others that come before ours, and the tables to which they and ours lead. The local table,
// which may have tens of thousands of addresses of Services, is not among them.
func (f *fib) before() (rules []markedRule, tables []int) {
	for _, r := range f.rules {
		if r.protocol != Protocol && r.Rule != kernelRule.Rule {
			rules = append(rules, r)
		}
		if r.Table != localTable && r.Table != 0 {
			tables = append(tables, r.Table)
		}
		if r.protocol == Protocol && r.Priority == priorityNode {
			break
		}
	}
	slices.Sort(tables)
	return rules, slices.Compact(tables)
}

// mostPlaces bounds the addresses of a peer that are asked for.
const mostPlaces = 256

// places are addresses of ranges, for each of which other rules and routes of others may decide.
func (f *fib) places(ranges []netip.Prefix, rules []markedRule, tables []int) (all []netip.Addr, err error) {
	var foreign []netip.Prefix
	for _, r := range rules {
		foreign = append(foreign, r.To, r.From)
	}
	for _, number := range tables {
		routes, err := f.table(number)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if !slices.Contains(f.own, r) {
				foreign = append(foreign, r.Dst)
			}
		}
	}
	for _, r := range ranges {
		all = append(all, r.Addr().Next())
	}
	for _, p := range foreign {
		if p.IsValid() && cidr.Within(p, ranges) && len(all) < mostPlaces {
			all = append(all, p.Addr(), last(p))
		}
	}
	return all, nil
}

// last is the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	return cidr.Address(cidr.Number(p.Addr()) | uint32(1<<(p.Addr().BitLen()-p.Bits())-1))
}

// senders are pods, by the links that lead to them: the first one, and for each rule the first one to which it applies.
func (f *fib) senders(pods []netip.Addr, rules []markedRule) (all []Packet) {
	add := func(applies func(Packet) bool) {
		for _, pod := range pods {
			way, err := f.ask(Packet{To: pod}, flow{}, 0)
			if p := (Packet{From: pod, IIf: way.Link}); err == nil && way.Link != loopback && applies(p) {
				all = append(all, p)
				return
			}
		}
	}
	add(func(Packet) bool { return true })
	for _, r := range rules {
		if r.From.IsValid() || r.IIf != "" || r.To.IsValid() {
			add(func(p Packet) bool {
				return (!r.From.IsValid() || r.From.Contains(p.From)) && (r.IIf == "" || r.IIf == p.IIf) || r.To.IsValid() && r.To.Contains(p.From)
			})
		}
	}
	return all
}

// detour returns what takes packets of a crossing elsewhere. mark is that of packets that come from gateways.
func (f *fib) detour(c Crossing, mark uint32) (string, error) {
	rules, tables := f.before()
	places, err := f.places(c.Peer, rules, tables)
	if err != nil {
		return "", err
	}
	pods := f.senders(c.Pods, rules)
	for _, peer := range places {
		for _, sender := range append([]Packet{{}}, pods...) {
			sender.To = peer
			if found, err := f.elsewhere(sender, func(link string) bool { return strings.HasPrefix(link, Prefix) }); found != "" || err != nil {
				return found, err
			}
		}
		for _, pod := range pods {
			for _, link := range c.Links {
				arriving := Packet{From: peer, To: pod.From, IIf: link, Mark: mark}
				if found, err := f.elsewhere(arriving, func(link string) bool { return link == pod.IIf }); found != "" || err != nil {
					return found, err
				}
			}
		}
	}
	return "", nil
}

// elsewhere returns how a packet leaves by another link than it should, or is refused, if rules or routes of others are
// why.
func (f *fib) elsewhere(p Packet, right func(link string) bool) (string, error) {
	taken, err := f.ask(p, flow{}, 0)
	if err == nil && right(taken.Link) || err != nil && refusalOf(err) == "" {
		return "", nil // of what the kernel does not answer, nothing is known
	}
	d, err := f.decide(p, flow{})
	if refusalOf(err) != "" || err == nil && !d.foreign && d.Rule != (Rule{}) {
		return "", nil // another reason, or a route of ours
	}
	from := ""
	if p.From.IsValid() {
		from = " from " + p.From.String()
	}
	return fmt.Sprintf("packets%s to %s meet a rule or route of another program: %s", from, p.To, d), err
}
