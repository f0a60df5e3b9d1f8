package choose

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Use is a range outside a cluster's own ranges that the cluster, or a host in it, uses. If a peer were remapped to it,
// these addresses would become unreachable.
type Use struct {
	Addresses netip.Prefix
	By        string // such as "API server", "route of node a1"
}

// String returns a text such as "10.12.3.0/24 (route of node a1)".
func (u Use) String() string { return fmt.Sprintf("%s (%s)", u.Addresses, u.By) }

// Uses are sorted by range, without duplicates.
type Uses []Use

// Wide reports whether the range is too wide to be avoided.
func (u Use) Wide() bool { return u.Addresses.Bits() < records.WidestAvoided }

// Outside returns the addresses in use around a cluster, outside its own ranges: those of API servers, external
// addresses of nodes, and those that nodes report.
func Outside(servers []netip.Addr, external, reported Uses, own []netip.Prefix) (all Uses) {
	for _, a := range servers {
		all = append(all, Use{Addresses: cidr.Single(a), By: "API server"})
	}
	all = slices.Concat(all, external, reported)
	slices.SortStableFunc(all, func(a, b Use) int { return a.Addresses.Compare(b.Addresses) })
	all = slices.CompactFunc(all, func(a, b Use) bool { return a.Addresses == b.Addresses })
	return slices.DeleteFunc(all, func(u Use) bool { return cidr.Within(u.Addresses, own) })
}

// Overlapping returns the first use that overlaps a range.
func (all Uses) Overlapping(p netip.Prefix) (Use, bool) {
	i := slices.IndexFunc(all, func(u Use) bool { return u.Addresses.Overlaps(p) })
	if i < 0 {
		return Use{}, false
	}
	return all[i], true
}

// prefer reserves the preferred range of a request, unless it is in use or reserved: then acquire chooses another.
func (all Uses) prefer(r *ipam.Registry, q ipam.Request) {
	p := q.Preferred
	if !p.IsValid() {
		p = q.Real
	}
	if _, used := all.Overlapping(p); !used {
		_ = r.Reserve(ipam.Reservation{Range: p, Owner: q.Owner, Purpose: q.Purpose, Real: q.Real})
	}
}

// acquire returns a range for a request: the one that its owner holds; else the preferred one; else a free one far from
// addresses in use; else a free one without addresses in use.
func (all Uses) acquire(r *ipam.Registry, q ipam.Request) (got ipam.Reservation, err error) {
	all.prefer(r, q)
	for _, around := range []bool{true, false} {
		held := all.hold(r, around)
		got, err = r.Acquire(q)
		for _, h := range held {
			// These reservations are temporary, because the addresses in use change over time. They contain no other
			// reservations.
			_ = r.ReleaseRange(h.Owner, h.Purpose, h.Range)
		}
		if !errors.Is(err, ipam.ErrNoneFree) {
			return got, err
		}
	}
	if len(all) > 0 {
		err = hint.With(err, fmt.Sprintf("%s; %d ranges in use around the cluster are avoided: docs/addresses.md", NoneFreeHint, len(all)))
	}
	return got, err
}

// neighbourhood is the prefix length of the range around addresses in use that is avoided if possible: a network in use
// is often a subnet of a larger one.
const neighbourhood = 12

// around returns ranges around the addresses, the largest first, and the addresses themselves.
func (u Use) around() []netip.Prefix {
	var all []netip.Prefix
	for bits := neighbourhood; bits < u.Addresses.Bits(); bits += 4 {
		all = append(all, netip.PrefixFrom(u.Addresses.Addr(), bits).Masked())
	}
	return append(all, u.Addresses)
}

// hold reserves the addresses in use, or the largest free ranges around them. It does not affect overlapping
// reservations for a peer.
func (all Uses) hold(r *ipam.Registry, around bool) (held []ipam.Reservation) {
	for _, u := range all {
		ranges := []netip.Prefix{u.Addresses}
		if around {
			ranges = u.around()
		}
		for _, p := range ranges {
			want := ipam.Reservation{Range: p, Owner: ipam.Cluster, Purpose: ipam.OutsideHost, Shared: true}
			if slices.Contains(held, want) {
				break
			}
			if r.Reserve(want) == nil {
				held = append(held, want)
				break
			}
		}
	}
	return held
}

// checkRequested rejects a range requested by the user that is in use.
func (all Uses) checkRequested(purpose ipam.Purpose, requested netip.Prefix) error {
	u, used := all.Overlapping(requested)
	if !used {
		return nil
	}
	return hint.With(fmt.Errorf("reserve %s as %s: %s is in use", requested, ipam.Reservation{Purpose: purpose}.Use(), u), "use another range")
}

// ReportedUses returns the addresses in use that nodes report. unread lists the nodes whose uses are incomplete.
func ReportedUses(nodes []records.Node) (all Uses, unread []string) {
	for _, n := range nodes {
		if n.Surroundings.More {
			unread = append(unread, fmt.Sprintf("node %s uses more than %d ranges, of which the rest is not known", n.Name, records.MaxSurroundings))
		}
		for _, used := range n.Surroundings.Ranges {
			all = append(all, Use{used.Range, fmt.Sprintf("%s of node %s", used.Use, n.Name)})
		}
	}
	slices.SortStableFunc(all, func(a, b Use) int { return cmp.Or(a.Addresses.Compare(b.Addresses), strings.Compare(a.By, b.By)) })
	return all, unread
}
