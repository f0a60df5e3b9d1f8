package choose

import (
	"errors"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// FindingKind is the kind of a problem with a reservation.
type FindingKind string

// The kinds of findings.
const (
	Orphan   FindingKind = "orphan"   // held for a peering without objects in the cluster
	Leak     FindingKind = "leak"     // held for a peering that does not use it
	Missing  FindingKind = "missing"  // in use, but not reserved
	Overlap  FindingKind = "overlap"  // in use twice
	Outdated FindingKind = "outdated" // for one of the cluster's own ranges that it no longer has
	Begun    FindingKind = "begun"    // held for a peering whose connect was interrupted or is running
)

// Finding is one problem with a reservation.
type Finding struct {
	Kind        FindingKind
	Reservation ipam.Reservation // existing or missing
	Why         string
	Hint        string // suggested command
}

// State has the reservations of a cluster and the ranges that it uses.
type State struct {
	Registry *ipam.Registry
	Fabric   *records.Fabric // nil: liqonet is not installed
	Peerings []records.Peering
	Begun    []string // names of peerings of which the cluster has objects
	Own      Ranges   // the present ranges of the cluster
	Assumed  bool     // the present ranges are those of the fabric, because discovery found none
}

// Findings compares reservations with the ranges in use. They are sorted by range.
func (a State) Findings() []Finding {
	found := slices.Concat(a.unused(), a.outdated())
	found = append(found, a.absent(found)...)
	slices.SortStableFunc(found, func(x, y Finding) int { return x.Reservation.Compare(y.Reservation) })
	return found
}

// unused returns the reservations for peerings that do not use them.
func (a State) unused() []Finding {
	peerings := make(map[string]records.Peering, len(a.Peerings))
	for _, p := range a.Peerings {
		peerings[p.Name] = p
	}
	var found []Finding
	for _, name := range ReservedPeerings(a.Registry) {
		p, complete := peerings[name]
		uses := a.used(p)
		for _, h := range a.Registry.Held(ipam.Peering(name)) {
			f := Finding{Reservation: h}
			switch {
			case complete && (h.Purpose == ipam.PeerUnderlay || keepsHost(p, h) || slices.Contains(uses, h)):
				continue
			case complete:
				f.Kind, f.Why, f.Hint = Leak, fmt.Sprintf("peering %q does not use it", name), leakHint(h, name)
			case slices.Contains(a.Begun, name):
				f.Kind, f.Why = Begun, fmt.Sprintf("peering %q is not complete: a connect runs, or was interrupted", name)
				f.Hint = "finish it with liqoctl network connect, or: liqoctl network disconnect " + name + " --one-side"
			default:
				f.Kind, f.Why = Orphan, fmt.Sprintf("there is no peering %q", name)
				f.Hint = "liqoctl network disconnect " + name + " --one-side"
			}
			found = append(found, f)
		}
	}
	return found
}

// keepsHost reports whether a reservation protects the address of a host that the peering exposes.
func keepsHost(p records.Peering, h ipam.Reservation) bool {
	return h.Purpose == ipam.OutsideHost && p.ExposedAs(h.Range.Addr()) != records.Exposed{}
}

// outdated returns the reservations for ranges of the cluster that it no longer has. The ranges in the fabric, which
// helpers apply, are included: only an update changes both.
func (a State) outdated() []Finding {
	var found []Finding
	if a.Fabric == nil || a.Assumed {
		return nil
	}
	facts := a.Own.facts()
	for _, h := range a.Registry.Held(ipam.Cluster, ipam.PodCIDR, ipam.ServiceCIDR, ipam.NodeNetwork) {
		same := func(f ipam.Reservation) bool { return f.Range == h.Range && f.Purpose == h.Purpose }
		if slices.ContainsFunc(facts, same) {
			continue
		}
		found = append(found, Finding{
			Kind: Outdated, Reservation: h, Why: "the cluster's " + h.Use() + " is another one now", Hint: updateHint,
		})
	}
	return found
}

// updateHint is the command that reserves missing ranges and releases outdated ones.
const updateHint = "liqoctl network init --update"

// absent returns the ranges that are in use and not reserved, assuming that the unused ones are released.
func (a State) absent(unused []Finding) []Finding {
	after, err := ipam.Restore(a.Registry.Pools(), a.Registry.List())
	if err != nil {
		panic("choose: a valid registry cannot be restored: " + err.Error())
	}
	for _, f := range unused {
		if f.Kind == Orphan || f.Kind == Leak {
			// Ranges of peerings contain no other reservations.
			_ = after.ReleaseRange(f.Reservation.Owner, f.Reservation.Purpose, f.Reservation.Range)
		}
	}
	var found []Finding
	for _, want := range a.desired() {
		if holds(a.Registry, want) {
			continue
		}
		f := Finding{Kind: Missing, Reservation: want, Why: "it is in use, and not reserved", Hint: updateHint}
		if err := after.Reserve(want); err != nil {
			f.Kind, f.Why, f.Hint = Overlap, err.Error(), overlapHint(want, err)
		}
		found = append(found, f)
	}
	return found
}

// holds reports whether a registry has a reservation.
func holds(r *ipam.Registry, want ipam.Reservation) bool {
	return slices.ContainsFunc(r.Held(want.Owner, want.Purpose), func(h ipam.Reservation) bool {
		return h.Range == want.Range && h.Real == want.Real
	})
}

// Unreserved returns the reservations on which a peering's record depends and which the registry lacks.
func (a State) Unreserved(p records.Peering) []ipam.Reservation {
	return slices.DeleteFunc(a.used(p), func(want ipam.Reservation) bool { return holds(a.Registry, want) })
}

// desired returns all reservations that should exist, ranges before the addresses inside them.
func (a State) desired() []ipam.Reservation {
	if a.Fabric == nil {
		return nil
	}
	all := append(a.Own.facts(),
		ipam.Reservation{Range: a.Fabric.ExternalCIDR(), Owner: ipam.Cluster, Purpose: ipam.ExternalCIDR},
		ipam.Reservation{Range: a.Fabric.InternalCIDR(), Owner: ipam.Cluster, Purpose: ipam.InternalCIDR})
	for _, p := range a.Peerings {
		all = append(all, a.used(p)...)
	}
	return all
}

// overlapHint returns the command that assigns other addresses to one of two conflicting owners.
func overlapHint(want ipam.Reservation, err error) string {
	parties := []ipam.Reservation{want}
	if conflict, ok := errors.AsType[*ipam.ConflictError](err); ok {
		parties = append(parties, conflict.Held)
	}
	for _, r := range parties {
		if name, ok := r.Owner.User(); ok {
			return fmt.Sprintf("liqoctl ipam release %s --owner %s", r.Range, name)
		}
	}
	for _, r := range parties {
		if name, ok := r.Owner.Peering(); ok {
			return fmt.Sprintf("peering %q needs other addresses: liqoctl network disconnect, then liqoctl network connect", name)
		}
	}
	return updateHint
}

// leakHint returns the command that releases a peering's unused reservation.
func leakHint(h ipam.Reservation, peering string) string {
	switch h.Purpose {
	case ipam.ExposedHost:
		return fmt.Sprintf("liqoctl network unexpose %s --peer %s", h.Real.Addr(), peering)
	case ipam.OutsideHost:
		return fmt.Sprintf("liqoctl network unexpose %s --peer %s", h.Range.Addr(), peering)
	}
	return "liqoctl network connect --update, for peering " + peering
}

// String returns a text such as "orphan 10.71.0.0/16 (peering "b" pods): there is no peering "b"".
func (f Finding) String() string {
	return fmt.Sprintf("%s %s (%s): %s", f.Kind, f.Reservation.Range, f.Reservation.Use(), f.Why)
}

// used returns the reservations on which a peering's record depends.
func (a State) used(p records.Peering) []ipam.Reservation {
	owner := ipam.Peering(p.Name)
	all := make([]ipam.Reservation, 0, len(p.Peer.PodCIDRs)+2+len(p.Exposed))
	for _, m := range p.Peer.PodCIDRs {
		all = append(all, ipam.Reservation{Range: m.Seen, Owner: owner, Purpose: ipam.PeerPods, Real: m.Real})
	}
	for _, m := range p.Peer.ExternalCIDRs {
		all = append(all, ipam.Reservation{Range: m.Seen, Owner: owner, Purpose: ipam.PeerExternal, Real: m.Real})
	}
	if a.Fabric != nil {
		all = append(all, gateways(p.Name, a.Fabric.InternalCIDR(), p.Number))
	}
	for _, x := range p.Exposed {
		all = append(all, ipam.Reservation{Range: cidr.Single(x.Address), Owner: owner, Purpose: ipam.ExposedHost, Real: cidr.Single(x.Host)})
	}
	return all
}
