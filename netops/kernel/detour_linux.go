package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops"
)

// PeerTraffic is the traffic that a node exchanges with a peer.
type PeerTraffic struct {
	Peer  []netip.Prefix // ranges
	Pods  []netip.Addr   // pods of this node that send
	Links []string       // to the peer's gateways
}

// Detours looks up the routes of the traffic with peers in the kernel. For each peer it returns how foreign rules or
// routes divert or reject packets; "": they do not. A Watch also reports foreign routes to the ranges of the last call.
//
// It looks up one address of each range, and both ends of each narrower prefix in a foreign rule or route that precedes
// liqonet's: as sent by the node itself, by one pod, and by pods to which such a rule applies. For packets from the
// peer it verifies that they are routed to these pods. It looks up packets of no particular flow, and those of the
// types of service, protocols and ports that such rules and routes select, the first of a range of ports. It compares
// IPsec policies. It sends no packets, and does not evaluate rules that select by mark or user.
func (k *Kernel) Detours(peers []PeerTraffic) ([]string, error) {
	var ranges []netip.Prefix
	mark := uint32(0)
	for _, c := range peers {
		ranges = append(ranges, c.Peer...)
		if len(c.Links) > 1 {
			mark = netops.MarkArrival
		}
	}
	k.detourRanges.Store(&ranges)
	found := make([]string, len(peers))
	if len(peers) == 0 {
		return found, nil
	}
	f, err := k.fib()
	if err != nil {
		return found, err
	}
	for i, c := range peers {
		if found[i], err = f.detour(c, mark); err != nil {
			return found, err
		}
	}
	return found, k.policies(peers, found)
}

// preceding returns the foreign rules that precede ours, and the tables of those and our rules. The local table, which
// may have tens of thousands of Service addresses, is not included.
func (f *fib) preceding() (rules []markedRule, tables []int) {
	for _, r := range f.rules {
		if r.protocol != netops.Protocol && r.Rule != kernelRule.Rule {
			rules = append(rules, r)
		}
		if r.Table != netops.LocalTable && r.Table != 0 {
			tables = append(tables, r.Table)
		}
		if r.protocol == netops.Protocol && r.Priority == netops.PriorityNode {
			break
		}
	}
	slices.Sort(tables)
	return rules, slices.Compact(tables)
}

// maxDestinations limits the number of addresses per peer that are looked up.
const maxDestinations = 256

// destinations returns addresses of the ranges, including both ends of all prefixes in foreign rules and routes.
func (f *fib) destinations(ranges []netip.Prefix, rules []markedRule, tables []int) (all []netip.Addr, err error) {
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
			if !slices.Contains(f.own, r.Route) {
				foreign = append(foreign, r.Dst)
			}
		}
	}
	for _, r := range ranges {
		all = append(all, r.Addr().Next())
	}
	for _, p := range foreign {
		if p.IsValid() && cidr.Within(p, ranges) && len(all) < maxDestinations {
			all = append(all, p.Addr(), netipx.PrefixLastIP(p))
		}
	}
	return all, nil
}

// maxFlows limits the number of flows per packet that are looked up.
const maxFlows = 16

// flows returns the zero flow and those that rules and routes select for such packets.
func (f *fib) flows(p netops.Packet, rules []markedRule) []flow {
	all := append([]flow{{}}, f.services...)
	for _, r := range rules {
		if !r.not && r.Selects(p) && !slices.Contains(all, r.least) {
			all = append(all, r.least)
		}
	}
	return all[:min(len(all), maxFlows)]
}

// senders returns pods with their links: the first pod, and for each rule the first pod to which it applies.
func (f *fib) senders(pods []netip.Addr, rules []markedRule) (all []netops.Packet) {
	add := func(applies func(netops.Packet) bool) {
		for _, pod := range pods {
			route, err := f.lookUp(netops.Packet{To: pod}, flow{}, 0)
			if p := (netops.Packet{From: pod, IIf: route.Link}); err == nil && route.Link != netops.Loopback && applies(p) {
				all = append(all, p)
				return
			}
		}
	}
	add(func(netops.Packet) bool { return true })
	for _, r := range rules {
		if r.From.IsValid() || r.IIf != "" || r.To.IsValid() {
			add(func(p netops.Packet) bool {
				return (!r.From.IsValid() || r.From.Contains(p.From)) && (r.IIf == "" || r.IIf == p.IIf) || r.To.IsValid() && r.To.Contains(p.From)
			})
		}
	}
	return all
}

// detour returns the rule or route that diverts the packets of a peer. mark is the mark of packets from gateways.
func (f *fib) detour(c PeerTraffic, mark uint32) (string, error) {
	rules, tables := f.preceding()
	destinations, err := f.destinations(c.Peer, rules, tables)
	if err != nil {
		return "", err
	}
	pods := f.senders(c.Pods, rules)
	ours := func(link string) bool { return strings.HasPrefix(link, netops.Prefix) }
	for _, peer := range destinations {
		for _, sender := range append([]netops.Packet{{}}, pods...) {
			sender.To = peer
			for _, of := range f.flows(sender, rules) {
				if found, err := f.diverted(sender, of, ours); found != "" || err != nil {
					return found, err
				}
			}
		}
		for _, pod := range pods {
			for _, link := range c.Links {
				arriving := netops.Packet{From: peer, To: pod.From, IIf: link, Mark: mark}
				for _, of := range f.flows(arriving, rules) {
					if found, err := f.diverted(arriving, of, func(link string) bool { return link == pod.IIf }); found != "" || err != nil {
						return found, err
					}
				}
			}
		}
	}
	return "", nil
}

// diverted returns how foreign rules or routes send a packet to another link than expected, or reject it.
func (f *fib) diverted(p netops.Packet, of flow, expected func(link string) bool) (string, error) {
	taken, err := f.lookUp(p, of, 0)
	if err == nil && expected(taken.Link) || err != nil && refusalOf(err) == "" {
		return "", nil // unknown: the kernel does not answer
	}
	d, err := f.decide(p, of)
	if refusalOf(err) != "" || err == nil && !d.foreign && d.Rule != (netops.Rule{}) {
		return "", nil // another reason, or one of our routes
	}
	packets := "packets"
	if p.From.IsValid() {
		packets += " from " + p.From.String()
	}
	packets += " to " + p.To.String()
	if of != (flow{}) {
		packets += " with " + of.String()
	}
	return fmt.Sprintf("%s meet a rule or route of another program: %s", packets, d), err
}
