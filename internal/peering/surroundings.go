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

// inUse returns the known addresses in use around the cluster: those to avoid, and ranges too wide to be avoided.
// Addresses within the cluster's own ranges are left out.
func (s *site) inUse() (avoided, wide choose.Uses) {
	own := slices.Concat(s.own.Pods, s.own.Services, s.own.Nodes)
	for _, u := range choose.Outside(s.observed.servers, inventory.ExternalUses(s.discovery.Nodes), s.observed.inUse, own) {
		if u.Wide() {
			wide = append(wide, u)
		} else {
			avoided = append(avoided, u)
		}
	}
	return avoided, wide
}

// checkInUse compares the nodes' reports with the cluster's ranges. An overlap is an error if this run has just
// selected the ranges, as nothing depends on them yet; else a warning.
func (s *site) checkInUse() error {
	for _, text := range s.observed.unread {
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
	}{{s.fabric.ExternalCIDR(), "external CIDR", "external-cidr"}, {s.fabric.InternalCIDR(), "internal CIDR", "internal-cidr"}} {
		u, used := avoided.Overlapping(own.Assigned)
		switch {
		case used && s.installing:
			return hint.With(fmt.Errorf("reserve %s as %s: %s is in use", own.Assigned, own.what, u), s.otherRange(own.flagged))
		case used:
			s.warnInUse(u, fmt.Sprintf("%s is the %s", own.Assigned, own.what), "liqoctl network reset, then install it with --"+s.side.Overrides.FlagPrefix+own.flagged)
		}
	}
	for _, p := range s.observed.peerings {
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

// otherRange returns the hint for selecting another range. A failed connect rolls back the installation that it has
// created; init does not.
func (s *site) otherRange(flag string) string {
	hint := fmt.Sprintf("choose another range with --%s%s", s.side.Overrides.FlagPrefix, flag)
	if !s.connecting {
		hint = "liqoctl network reset, then " + hint
	}
	return hint
}

// reportPublicCIDRs reports public CIDRs of the peer that the record does not contain yet. If they are not remapped,
// pods can no longer reach other hosts in them.
func (m *member) reportPublicCIDRs() {
	var public []string
	for _, mapping := range slices.Concat(m.addresses.Pods, m.addresses.External) {
		if mapping.Identity() && !cidr.Private(mapping.Real) && (m.have == nil || !slices.Contains(m.have.Peer.CIDRs(), mapping)) {
			public = append(public, mapping.Real.String())
		}
	}
	if len(public) > 0 {
		m.reporter.Note(fmt.Sprintf("cluster %q: packets to %s go to %s, whose CIDRs are not private (RFC 1918, RFC 6598)",
			m.cluster.Context, strings.Join(public, ", "), m.peer.Cluster.Name))
	}
}

// reportUndetected reports which networks the remapped CIDRs of a new peering do not avoid.
func (m *member) reportUndetected() {
	m.reporter.Note(fmt.Sprintf("cluster %q: networks behind default routes are not detected: reserve on-premises ranges with --%sreserve",
		m.cluster.Context, m.side.Overrides.FlagPrefix))
}

// reportRemapped reports CIDRs of the peer that are remapped because of addresses in use around the cluster.
func (m *member) reportRemapped() {
	avoided, _ := m.inUse()
	for _, mapping := range slices.Concat(m.addresses.Pods, m.addresses.External) {
		if u, used := avoided.Overlapping(mapping.Real); used && !mapping.Identity() {
			m.reporter.Note(fmt.Sprintf("cluster %q: %s of %s is remapped to %s, as %s is in use", m.cluster.Context, mapping.Real, m.peer.Cluster.Name, mapping.Seen, u))
		}
	}
}
