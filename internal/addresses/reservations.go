// Package addresses decides which ranges a cluster uses for itself and for its peers, on a registry of its reservations
// (package ipam): what is used around the cluster, what is chosen, what collides, and what a check of all of them
// finds.
package addresses

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/cluster/discover"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Bounds of the internal and external CIDR's length: an overlay id is a 24-bit offset in the internal CIDR, and
// half of it must hold the nodes.
const (
	WidestCIDR    = 8
	NarrowestCIDR = 26
)

// Own are the ranges that a cluster has of itself, and those that the user wants.
type Own struct {
	Pods, Services, Nodes, Reserved []netip.Prefix
	External, Internal              netip.Prefix   // zero value: no wish
	Pools                           []netip.Prefix // nil: those that the registry has
	InUse                           Uses           // what its external and internal CIDR must not be chosen from
}

// facts are the reservations for what the cluster has. They are shared: in flat networks pods and nodes have
// addresses of one range.
func (o Own) facts() []ipam.Reservation {
	return slices.Concat(
		sharedBy(ipam.PodCIDR, o.Pods), sharedBy(ipam.ServiceCIDR, o.Services), sharedBy(ipam.NodeNetwork, o.Nodes))
}

// sharedBy are shared reservations of the cluster for one purpose.
func sharedBy(purpose ipam.Purpose, ranges []netip.Prefix) []ipam.Reservation {
	all := make([]ipam.Reservation, len(ranges))
	for i, p := range ranges {
		all[i] = ipam.Reservation{Range: p.Masked(), Owner: ipam.Cluster, Purpose: purpose, Shared: true}
	}
	return all
}

// ReserveOwn brings a cluster's own ranges into its registry and returns its external and internal CIDR. Doing
// it again changes nothing. Facts that are no longer true are released; what the user reserved stays.
func ReserveOwn(r *ipam.Registry, own Own) (external, internal netip.Prefix, err error) {
	if own.Pools != nil {
		if err := r.SetPools(own.Pools...); err != nil {
			return external, internal, err
		}
	}
	for purpose, stay := range map[ipam.Purpose][]netip.Prefix{
		ipam.PodCIDR: own.Pods, ipam.ServiceCIDR: own.Services, ipam.NodeNetwork: own.Nodes,
	} {
		if err := releaseOthers(r, ipam.Cluster, purpose, stay); err != nil {
			return external, internal, err
		}
	}
	// What the user wants kept free may well be in use: it is shared, too.
	for _, want := range append(own.facts(), sharedBy(ipam.Reserved, own.Reserved)...) {
		if err := r.Reserve(want); err != nil {
			return external, internal, err
		}
	}
	bits := defaultInternal.Bits()
	for _, wish := range []netip.Prefix{own.Internal, own.External} {
		if wish.IsValid() {
			bits = wish.Bits()
		}
	}
	if external, err = own.chosenRange(r, ipam.ExternalCIDR, own.External, resized(defaultExternal, bits)); err != nil {
		return external, internal, err
	}
	internal, err = own.chosenRange(r, ipam.InternalCIDR, own.Internal, resized(defaultInternal, bits))
	return external, internal, err
}

// chosenRange reserves the range that is wished for, exactly, or else the usual one or any that is free. A
// cluster that has one keeps it.
func (o Own) chosenRange(r *ipam.Registry, purpose ipam.Purpose, wish, usual netip.Prefix) (netip.Prefix, error) {
	if held := r.Held(ipam.Cluster, purpose); len(held) > 0 {
		if wish.IsValid() && held[0].Range != wish {
			return netip.Prefix{}, hint.With(
				fmt.Errorf("reserve %s: the %s is already %s", wish, held[0].Use(), held[0].Range),
				"it cannot change while liqonet is installed: liqoctl network reset")
		}
		return held[0].Range, nil
	}
	if wish.IsValid() {
		if wish.Bits() < WidestCIDR || wish.Bits() > NarrowestCIDR {
			return wish, &progress.InputError{Err: fmt.Errorf("reserve %s: the length must be /%d to /%d", wish, WidestCIDR, NarrowestCIDR)}
		}
		if err := o.InUse.checkWish(purpose, wish); err != nil {
			return wish, err
		}
		err := r.Reserve(ipam.Reservation{Range: wish, Owner: ipam.Cluster, Purpose: purpose})
		return wish, err
	}
	got, err := o.InUse.acquire(r, ipam.Request{Owner: ipam.Cluster, Purpose: purpose, Preferred: usual})
	return got.Range, err
}

// Remote are the ranges that a peer shows.
type Remote struct {
	Pods     []netip.Prefix
	External netip.Prefix
	Underlay []netip.Prefix // where its nodes are
	InUse    Uses           // what it must not be reached by
}

// Assigned are what a cluster's registry gave to a peering.
type Assigned struct {
	Pods     []records.Mapping
	External records.Mapping
}

// requests are those for all that a peer has.
func (peer Remote) requests(owner ipam.Owner) []ipam.Request {
	var all []ipam.Request
	for _, p := range peer.Pods {
		all = append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerPods, Real: p})
	}
	return append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerExternal, Real: peer.External})
}

// ReservePeer finds ranges for all that a peer has: its real ones where they are free here, else others of the
// same size. Doing it again changes nothing. Ranges that the peer no longer has are released.
func ReservePeer(r *ipam.Registry, peering string, peer Remote) (Assigned, error) {
	owner := ipam.Peering(peering)
	requests := peer.requests(owner)
	if err := releaseGone(r, owner, requests, peer.Underlay); err != nil {
		return Assigned{}, err
	}
	keepClear(r, owner, peer)
	// First all that are free, before the search for another could take one of them.
	for _, q := range requests {
		peer.InUse.prefer(r, q)
	}
	mappings := make([]records.Mapping, len(requests))
	for i, q := range requests {
		got, err := peer.InUse.acquire(r, q)
		if err != nil {
			return Assigned{}, err
		}
		mappings[i] = records.Mapping{Real: q.Real, Seen: got.Range}
	}
	last := len(mappings) - 1
	return Assigned{Pods: mappings[:last], External: mappings[last]}, nil
}

// releaseGone releases what the peering holds for ranges that the peer has no more.
func releaseGone(r *ipam.Registry, owner ipam.Owner, requests []ipam.Request, underlay []netip.Prefix) error {
	for _, h := range r.Held(owner, ipam.PeerPods, ipam.PeerExternal) {
		stays := func(q ipam.Request) bool { return q.Purpose == h.Purpose && q.Real == h.Real }
		if slices.ContainsFunc(requests, stays) {
			continue
		}
		if err := r.ReleaseRange(owner, h.Purpose, h.Range); err != nil {
			return err
		}
	}
	return releaseOthers(r, owner, ipam.PeerUnderlay, underlay)
}

// keepClear marks the networks of the peer's nodes, where its endpoints are, as not to be given to pods. Where
// something has them already there is nothing to gain: a gateway's own packets never take a peering's routes.
// That goes for flat networks too, whose nodes have addresses among the pods.
func keepClear(r *ipam.Registry, owner ipam.Owner, peer Remote) {
	for _, p := range peer.Underlay {
		if cidr.Overlaps(p, append(slices.Clone(peer.Pods), peer.External)) {
			continue
		}
		// The error can only be a conflict, see above.
		_ = r.Reserve(ipam.Reservation{Range: p, Owner: owner, Purpose: ipam.PeerUnderlay, Shared: true})
	}
}

// releaseOthers releases what an owner holds for a purpose except the ranges that stay.
func releaseOthers(r *ipam.Registry, owner ipam.Owner, purpose ipam.Purpose, stay []netip.Prefix) error {
	for _, h := range r.Held(owner, purpose) {
		if slices.Contains(stay, h.Range) {
			continue
		}
		if err := r.ReleaseRange(owner, purpose, h.Range); err != nil {
			return err
		}
	}
	return nil
}

// Restore reserves again what the fabric and the peerings use: an older registry, as of a manifest, may have taken the
// place of the one in which it was reserved. What others hold by now stays theirs: Check tells.
func Restore(r *ipam.Registry, f *records.Fabric, peerings []records.Peering) {
	own := Wanted(discover.Discovery{}, discover.Overrides{}, f)
	for _, used := range (state{fabric: f, peerings: peerings, own: own}).wanted() {
		_ = r.Reserve(used)
	}
}

// Add is inventory.UpdateReservations for changes that take what is free. Peerings are read after the registry: one
// that is read, and removed meanwhile, releases what it holds later than that, which makes the update begin anew.
func Add(ctx context.Context, c *cluster.Cluster, f *records.Fabric, change func(*ipam.Registry) error) error {
	return inventory.UpdateReservations(ctx, c, func(r *ipam.Registry) error {
		peerings, err := inventory.Peerings(ctx, c)
		if err != nil {
			return err
		}
		Restore(r, f, peerings)
		return change(r)
	})
}

// resized is the range of another length at the same place.
func resized(p netip.Prefix, bits int) netip.Prefix { return netip.PrefixFrom(p.Addr(), bits).Masked() }

// UpperHalf is the half of an internal CIDR in which gateways have their addresses; the nodes have the lower.
func UpperHalf(p netip.Prefix) netip.Prefix {
	_, upper := cidr.Halves(p)
	return upper
}

// Wanted merges what was discovered with what the cluster's fabric says already: a recorded range that
// covers everything seen stays, so that nodes which come and go change nothing. What the user told is taken as it is.
func Wanted(d discover.Discovery, o discover.Overrides, fabric *records.Fabric) Own {
	own := Own{Pods: d.PodCIDRs.Prefixes, Services: d.ServiceCIDRs.Prefixes, Nodes: d.NodeNetworks.Prefixes}
	if fabric == nil {
		return own
	}
	keep := func(seen *[]netip.Prefix, told, recorded []netip.Prefix) {
		outside := func(p netip.Prefix) bool { return !cidr.Within(p, recorded) }
		if told == nil && !slices.ContainsFunc(*seen, outside) {
			*seen = recorded
		}
	}
	keep(&own.Pods, o.PodCIDRs, fabric.PodCIDRs)
	keep(&own.Services, o.ServiceCIDRs, fabric.ServiceCIDRs)
	keep(&own.Nodes, o.NodeNetworks, fabric.NodeNetworks)
	return own
}

// Ranges that a cluster uses where neither the user nor an earlier run chose others.
var (
	defaultExternal = netip.MustParsePrefix("10.70.0.0/16")
	defaultInternal = netip.MustParsePrefix("10.80.0.0/16")
)
