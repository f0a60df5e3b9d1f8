package peering

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// inUse are addresses outside a cluster's own ranges that the cluster, or somebody in it, uses: a peer that is reached by
// them would take them away.
type inUse struct {
	addresses netip.Prefix
	by        string // such as "API server", "route of node a1"
}

// String is such as "10.12.3.0/24 (route of node a1)".
func (u inUse) String() string { return fmt.Sprintf("%s (%s)", u.addresses, u.by) }

// inUses are sorted by range, each of which is there once.
type inUses []inUse

// overlapping returns the first one that overlaps a range.
func (all inUses) overlapping(p netip.Prefix) (inUse, bool) {
	i := slices.IndexFunc(all, func(u inUse) bool { return u.addresses.Overlaps(p) })
	if i < 0 {
		return inUse{}, false
	}
	return all[i], true
}

// prefer reserves the preferred range of a request, unless it is in use or held by another: acquire finds another then.
func (all inUses) prefer(r *ipam.Registry, q ipam.Request) {
	p := q.Preferred
	if !p.IsValid() {
		p = q.Real
	}
	if _, used := all.overlapping(p); !used {
		_ = r.Reserve(ipam.Reservation{Range: p, Owner: q.Owner, Purpose: q.Purpose, Real: q.Real})
	}
}

// acquire returns a range for a request: the one that it holds, else the preferred one, else a free one that is far from
// what is in use, or at least free of it.
func (all inUses) acquire(r *ipam.Registry, q ipam.Request) (got ipam.Reservation, err error) {
	all.prefer(r, q)
	for _, around := range []bool{true, false} {
		held := all.hold(r, around)
		got, err = r.Acquire(q)
		for _, h := range held {
			// It is not kept: what is in use changes from day to day. Nothing lies inside it.
			_ = r.ReleaseRange(h.Owner, h.Purpose, h.Range)
		}
		if !errors.Is(err, ipam.ErrNoneFree) {
			return got, err
		}
	}
	if len(all) > 0 {
		err = hint.With(err, fmt.Sprintf("%s; %d ranges in use around the cluster are avoided: docs/addresses.md", inventory.NoneFreeHint, len(all)))
	}
	return got, err
}

// neighbourhood is how far around addresses in use a range is chosen only if there is no other: networks are cut from
// larger ones.
const neighbourhood = 12

// around are the ranges around the addresses, the largest first, and the addresses themselves.
func (u inUse) around() []netip.Prefix {
	var all []netip.Prefix
	for bits := neighbourhood; bits < u.addresses.Bits(); bits += 4 {
		all = append(all, netip.PrefixFrom(u.addresses.Addr(), bits).Masked())
	}
	return append(all, u.addresses)
}

// hold reserves the addresses in use, or the largest ranges around them that are free. Where they overlap what is held for a
// peer already, that stays.
func (all inUses) hold(r *ipam.Registry, around bool) (held []ipam.Reservation) {
	for _, u := range all {
		ranges := []netip.Prefix{u.addresses}
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

// checkWish refuses a range that the user wants and others use.
func (all inUses) checkWish(purpose ipam.Purpose, wish netip.Prefix) error {
	u, used := all.overlapping(wish)
	if !used {
		return nil
	}
	return hint.With(fmt.Errorf("reserve %s as %s: %s is in use", wish, ipam.Reservation{Purpose: purpose}.Use(), u), "use another range")
}

// inUse are the addresses that are in use around the cluster, as far as they are known, and those that are too many to be
// avoided. What lies within the cluster's own ranges is no news.
func (s *site) inUse() (avoided, wide inUses) {
	var all inUses
	for _, a := range s.found.servers {
		all = append(all, inUse{cidr.Single(a), "API server"})
	}
	for _, n := range s.discovery.Nodes {
		for _, a := range n.External {
			all = append(all, inUse{cidr.Single(a), "external address of node " + n.Name})
		}
	}
	all = append(all, s.found.inUse...)
	slices.SortStableFunc(all, func(a, b inUse) int { return a.addresses.Compare(b.addresses) })
	all = slices.CompactFunc(all, func(a, b inUse) bool { return a.addresses == b.addresses })
	own := slices.Concat(s.own.pods, s.own.services, s.own.nodes)
	for _, u := range all {
		switch {
		case cidr.Within(u.addresses, own):
		case u.addresses.Bits() < records.WidestAvoided:
			wide = append(wide, u)
		default:
			avoided = append(avoided, u)
		}
	}
	return avoided, wide
}

// reportedInUse reads what nodes report of their surroundings. unread says of which nodes that is not known, or not all: no
// other report depends on it. Helpers of an earlier release report nothing.
func reportedInUse(leases []*coordinationv1.Lease) (all inUses, unread []string) {
	for _, lease := range leases {
		text, ok := lease.Annotations[records.AnnotationSurroundings]
		if !ok || lease.Spec.HolderIdentity == nil {
			continue
		}
		node := *lease.Spec.HolderIdentity
		s, err := records.Decode[records.Surroundings](text)
		if err != nil {
			unread = append(unread, fmt.Sprintf("which ranges node %s uses is not known: %v", node, err))
			continue
		}
		if s.More {
			unread = append(unread, fmt.Sprintf("node %s uses more than %d ranges, of which the rest is not known", node, records.MaxSurroundings))
		}
		for _, used := range s.Ranges {
			all = append(all, inUse{used.Range, fmt.Sprintf("%s of node %s", used.Use, node)})
		}
	}
	slices.SortFunc(all, func(a, b inUse) int { return cmp.Or(a.addresses.Compare(b.addresses), strings.Compare(a.by, b.by)) })
	return all, unread
}

// checkInUse compares what nodes report with the ranges that the cluster has. It is an error where this run has chosen them
// just now, as nothing depends on them yet; else a warning.
func (s *site) checkInUse() error {
	for _, text := range s.found.unread {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s: reserve them with --%sreserve", s.Cluster.Context, text, s.Overrides.FlagPrefix))
	}
	avoided, wide := s.inUse()
	for _, u := range wide {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s is too wide to avoid: reserve the parts in use with --%sreserve",
			s.Cluster.Context, u, s.Overrides.FlagPrefix))
	}
	for _, own := range []struct {
		addresses     netip.Prefix
		what, flagged string
	}{{s.fabric.ExternalCIDR, "external CIDR", "external-cidr"}, {s.fabric.InternalCIDR, "internal CIDR", "internal-cidr"}} {
		u, used := avoided.overlapping(own.addresses)
		switch {
		case used && s.installing:
			return hint.With(fmt.Errorf("reserve %s as %s: %s is in use", own.addresses, own.what, u), s.otherRange(own.flagged))
		case used:
			s.warnInUse(u, fmt.Sprintf("%s is the %s", own.addresses, own.what), "liqoctl network reset, then install it with --"+s.Overrides.FlagPrefix+own.flagged)
		}
	}
	for _, p := range s.found.peerings {
		for _, seen := range p.Seen() {
			if u, used := avoided.overlapping(seen); used {
				s.warnInUse(u, fmt.Sprintf("%s leads to peering %q", seen, p.Name), "liqoctl network disconnect, then connect: other addresses are chosen")
			}
		}
	}
	return nil
}

func (s *site) warnInUse(u inUse, but, hint string) {
	s.reporter.Warn(fmt.Sprintf("cluster %q: %s is in use, and %s: it cannot be reached from pods and nodes", s.Cluster.Context, u, but), hint)
}

// otherRange says how to choose another range. A connect that fails removes the installation that it has made; an init does not.
func (s *site) otherRange(flag string) string {
	hint := fmt.Sprintf("choose another range with --%s%s", s.Overrides.FlagPrefix, flag)
	if !s.connecting {
		hint = "liqoctl network reset, then " + hint
	}
	return hint
}

// noteRemapped says why ranges of the peer that are no others' here are remapped all the same.
func (e *end) noteRemapped() {
	avoided, _ := e.inUse()
	for _, m := range append(slices.Clone(e.addresses.pods), e.addresses.external) {
		if u, used := avoided.overlapping(m.Real); used && !m.Identity() {
			e.reporter.Note(fmt.Sprintf("cluster %q: %s of %s is remapped to %s, as %s is in use", e.Cluster.Context, m.Real, e.peer.name, m.Seen, u))
		}
	}
}
