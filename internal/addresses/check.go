package addresses

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
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

// Check compares a cluster's reservations with its peerings and its present ranges. The findings are sorted by range.
func Check(ctx context.Context, c *kube.Cluster) ([]Finding, error) {
	have, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	return have.findings(), nil
}

// state has the inputs of a check.
type state struct {
	registry *ipam.Registry
	fabric   *records.Fabric // nil: liqonet is not installed
	peerings []records.Peering
	begun    []string // names of peerings of which the cluster has objects
	own      Own      // the present ranges of the cluster
	assumed  bool     // the present ranges are those of the fabric, because discovery found none
}

// readState reads reservations before peerings: connect writes them in that order, so that the reservations of every
// peering that is read are included.
func readState(ctx context.Context, c *kube.Cluster) (state, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return state{}, err
	}
	a := state{registry: registry}
	var discovery discover.Discovery
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
		discovery, err = discover.Read(inner, c, discover.Overrides{})
		if _, a.assumed = errors.AsType[*discover.MissingError](err); a.assumed {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return state{}, err
	}
	a.own = Desired(discovery, discover.Overrides{}, a.fabric)
	return a, nil
}

// used returns the reservations on which a peering's record depends.
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
