package peering

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/ipam/choose"
)

// inUse are the addresses that are in use around the cluster, as far as they are known, and those that are too many to
// be avoided. What lies within the cluster's own ranges is no news.
func (s *site) inUse() (avoided, wide choose.Uses) {
	own := slices.Concat(s.own.Pods, s.own.Services, s.own.Nodes)
	for _, u := range choose.Outside(s.found.servers, inventory.ExternalUses(s.discovery.Nodes), s.found.inUse, own) {
		if u.Wide() {
			wide = append(wide, u)
		} else {
			avoided = append(avoided, u)
		}
	}
	return avoided, wide
}

// checkInUse compares what nodes report with the ranges that the cluster has. It is an error where this run has chosen
// them just now, as nothing depends on them yet; else a warning.
func (s *site) checkInUse() error {
	for _, text := range s.found.unread {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s: reserve them with --%sreserve", s.cluster.Context, text, s.side.Overrides.FlagPrefix))
	}
	avoided, wide := s.inUse()
	for _, u := range wide {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s is too wide to avoid: reserve the parts in use with --%sreserve",
			s.cluster.Context, u, s.side.Overrides.FlagPrefix))
	}
	for _, own := range []struct {
		Assigned      netip.Prefix
		what, flagged string
	}{{s.fabric.ExternalCIDR, "external CIDR", "external-cidr"}, {s.fabric.InternalCIDR, "internal CIDR", "internal-cidr"}} {
		u, used := avoided.Overlapping(own.Assigned)
		switch {
		case used && s.installing:
			return hint.With(fmt.Errorf("reserve %s as %s: %s is in use", own.Assigned, own.what, u), s.otherRange(own.flagged))
		case used:
			s.warnInUse(u, fmt.Sprintf("%s is the %s", own.Assigned, own.what), "liqoctl network reset, then install it with --"+s.side.Overrides.FlagPrefix+own.flagged)
		}
	}
	for _, p := range s.found.peerings {
		for _, seen := range p.Seen() {
			if u, used := avoided.Overlapping(seen); used {
				s.warnInUse(u, fmt.Sprintf("%s leads to peering %q", seen, p.Name), "liqoctl network disconnect, then connect: other addresses are chosen")
			}
		}
	}
	return nil
}

func (s *site) warnInUse(u choose.Use, but, hint string) {
	s.reporter.Warn(fmt.Sprintf("cluster %q: %s is in use, and %s: it cannot be reached from pods and nodes", s.cluster.Context, u, but), hint)
}

// otherRange says how to choose another range. A connect that fails removes the installation that it has made; an init
// does not.
func (s *site) otherRange(flag string) string {
	hint := fmt.Sprintf("choose another range with --%s%s", s.side.Overrides.FlagPrefix, flag)
	if !s.connecting {
		hint = "liqoctl network reset, then " + hint
	}
	return hint
}

// notePublic names ranges that the record does not have yet, and whose addresses are not private: if they are not
// remapped, pods reach nobody else at them any more.
func (e *end) notePublic() {
	var public []string
	for _, m := range append(slices.Clone(e.addresses.Pods), e.addresses.External) {
		if m.Identity() && !cidr.Private(m.Real) && (e.have == nil || !slices.Contains(e.have.Peer.CIDRs(), m)) {
			public = append(public, m.Real.String())
		}
	}
	if len(public) > 0 {
		e.reporter.Note(fmt.Sprintf("cluster %q: packets to %s go to %s, whose CIDRs are not private (RFC 1918, RFC 6598)",
			e.cluster.Context, strings.Join(public, ", "), e.peer.name))
	}
}

// noteUndetected names what the ranges of a new peering do not avoid.
func (e *end) noteUndetected() {
	e.reporter.Note(fmt.Sprintf("cluster %q: networks behind default routes are not detected: reserve on-premises ranges with --%sreserve",
		e.cluster.Context, e.side.Overrides.FlagPrefix))
}

// noteRemapped says why ranges of the peer that are no others' here are remapped all the same.
func (e *end) noteRemapped() {
	avoided, _ := e.inUse()
	for _, m := range append(slices.Clone(e.addresses.Pods), e.addresses.External) {
		if u, used := avoided.Overlapping(m.Real); used && !m.Identity() {
			e.reporter.Note(fmt.Sprintf("cluster %q: %s of %s is remapped to %s, as %s is in use", e.cluster.Context, m.Real, e.peer.name, m.Seen, u))
		}
	}
}
