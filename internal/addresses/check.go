package addresses

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// CheckOptions are the options of CheckAddresses.
type CheckOptions struct {
	Cluster   *cluster.Cluster
	Overrides cluster.Overrides // replace discovery
	Repair    bool
	// Planned is told what was found before anything is mended; nil: nobody is. Its error ends the check.
	Planned func(CheckResult) error
}

// CheckResult is what CheckAddresses found, and mended.
type CheckResult struct {
	Reservations int       `json:"reservations"` // that there were
	Findings     []Finding `json:"findings"`     // sorted by range
	Notes        []string  `json:"notes,omitempty"`
}

// Open counts the findings that are not mended.
func (c CheckResult) Open() int {
	n := 0
	for _, f := range c.Findings {
		if !f.Repaired {
			n++
		}
	}
	return n
}

// FindingKind says what is wrong with a reservation.
type FindingKind string

// The kinds of findings.
const (
	Orphan   FindingKind = "orphan"   // held for a peering of which the cluster has nothing
	Leak     FindingKind = "leak"     // held for a peering that does not use it
	Missing  FindingKind = "missing"  // in use, but not held
	Overlap  FindingKind = "overlap"  // in use twice
	Outdated FindingKind = "outdated" // a range of the cluster's own that it has no more
	Begun    FindingKind = "begun"    // held for a peering whose connect was interrupted, or runs now
)

// RepairAction is what a repair does with a reservation.
type RepairAction string

// The actions of a repair. The zero value stands for none: it takes a decision.
const (
	ReleaseIt RepairAction = "release"
	ReserveIt RepairAction = "reserve"
)

// Finding is one thing that is not in order.
type Finding struct {
	Kind        FindingKind      `json:"kind"`
	Reservation ipam.Reservation `json:"reservation"` // that is held, or should be
	Why         string           `json:"why"`
	Repair      RepairAction     `json:"repair,omitempty"`
	Hint        string           `json:"hint,omitempty"` // what the user can do where a repair cannot
	Repaired    bool             `json:"repaired"`
}

// Check compares a cluster's reservations with its peerings and with the ranges that it really has now.
// With Repair it does what is safe: nothing that a peering uses is released, nothing that is held is given to
// another.
func Check(ctx context.Context, o CheckOptions) (CheckResult, error) {
	have, err := readState(ctx, o.Cluster, o.Overrides)
	if err != nil {
		return CheckResult{}, err
	}
	check := CheckResult{Reservations: len(have.registry.List()), Findings: have.findings(), Notes: have.notes}
	if o.Planned != nil {
		if err := o.Planned(check); err != nil {
			return check, err
		}
	}
	if !o.Repair || !slices.ContainsFunc(check.Findings, Finding.Safe) {
		return check, nil
	}
	// What a connect has made since must not be taken for an orphan: it is read again.
	if have, err = readState(ctx, o.Cluster, o.Overrides); err != nil {
		return check, err
	}
	err = inventory.UpdateReservations(ctx, o.Cluster, func(r *ipam.Registry) (err error) {
		have.registry = r
		check.Findings, err = have.mend(check.Findings)
		return err
	})
	return check, err
}

// state is all that a check compares.
type state struct {
	registry *ipam.Registry
	fabric   *records.Fabric // nil: liqonet is not installed
	peerings []records.Peering
	begun    []string // names of peerings of which the cluster has objects
	own      Own      // that the cluster has now
	notes    []string
}

// readState reads reservations before peerings: a connect writes them in that order, so that a peering which is
// read has its reservations here too.
func readState(ctx context.Context, c *cluster.Cluster, overrides cluster.Overrides) (state, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return state{}, err
	}
	a := state{registry: registry}
	var discovery cluster.Discovery
	group, inner := errgroup.WithContext(ctx)
	inventory.ReadInto(inner, group, c, &a.fabric, inventory.Fabric)
	inventory.ReadInto(inner, group, c, &a.peerings, inventory.Peerings)
	group.Go(func() error {
		objects, err := c.List(inner, records.LabelPeering)
		for _, object := range objects {
			a.begun = append(a.begun, object.GetLabels()[records.LabelPeering])
		}
		return err
	})
	group.Go(func() (err error) {
		discovery, err = c.Discover(inner, overrides)
		var missing *cluster.MissingError
		if errors.As(err, &missing) {
			a.notes = append(a.notes, fmt.Sprintf("%v: the recorded ranges are taken for granted (%s)", missing, missing.Hint()))
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return state{}, err
	}
	a.own = Wanted(discovery, overrides, a.fabric)
	return a, nil
}

// used are the reservations that a peering's document relies on.
func used(p records.Peering) []ipam.Reservation {
	owner := ipam.Peering(p.Name)
	all := make([]ipam.Reservation, 0, len(p.Peer.PodCIDRs)+2+len(p.Exposed))
	for _, m := range p.Peer.PodCIDRs {
		all = append(all, ipam.Reservation{Range: m.Seen, Owner: owner, Purpose: ipam.PeerPods, Real: m.Real})
	}
	all = append(all,
		ipam.Reservation{Range: p.Peer.ExternalCIDR.Seen, Owner: owner, Purpose: ipam.PeerExternal, Real: p.Peer.ExternalCIDR.Real})
	for _, g := range p.Gateways {
		all = append(all, ipam.Reservation{Range: cidr.Single(g.Address), Owner: owner, Purpose: ipam.GatewayAddress})
	}
	for _, x := range p.Exposed {
		all = append(all, ipam.Reservation{Range: cidr.Single(x.Address), Owner: owner, Purpose: ipam.ExposedHost, Real: cidr.Single(x.Host)})
	}
	return all
}
