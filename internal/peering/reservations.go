package peering

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/ipam"
)

// Bounds of the internal and external CIDR's length: an overlay id is a 24-bit offset in the internal CIDR, and
// half of it must hold the nodes.
const (
	WidestCIDR    = 8
	NarrowestCIDR = 26
)

// ownRanges are the ranges that a cluster has of itself, and those that the user wants.
type ownRanges struct {
	pods, services, nodes, reserved []netip.Prefix
	external, internal              netip.Prefix   // zero value: no wish
	pools                           []netip.Prefix // nil: those that the registry has
	inUse                           inUses         // what its external and internal CIDR must not be chosen from
}

// facts are the reservations for what the cluster has. They are shared: in flat networks pods and nodes have
// addresses of one range.
func (o ownRanges) facts() []ipam.Reservation {
	return slices.Concat(
		sharedBy(ipam.PodCIDR, o.pods), sharedBy(ipam.ServiceCIDR, o.services), sharedBy(ipam.NodeNetwork, o.nodes))
}

// sharedBy are shared reservations of the cluster for one purpose.
func sharedBy(purpose ipam.Purpose, ranges []netip.Prefix) []ipam.Reservation {
	all := make([]ipam.Reservation, len(ranges))
	for i, p := range ranges {
		all[i] = ipam.Reservation{Range: p.Masked(), Owner: ipam.Cluster, Purpose: purpose, Shared: true}
	}
	return all
}

// reserveOwn brings a cluster's own ranges into its registry and returns its external and internal CIDR. Doing
// it again changes nothing. Facts that are no longer true are released; what the user reserved stays.
func reserveOwn(r *ipam.Registry, own ownRanges) (external, internal netip.Prefix, err error) {
	if own.pools != nil {
		if err := r.SetPools(own.pools...); err != nil {
			return external, internal, err
		}
	}
	for purpose, stay := range map[ipam.Purpose][]netip.Prefix{
		ipam.PodCIDR: own.pods, ipam.ServiceCIDR: own.services, ipam.NodeNetwork: own.nodes,
	} {
		if err := releaseOthers(r, ipam.Cluster, purpose, stay); err != nil {
			return external, internal, err
		}
	}
	// What the user wants kept free may well be in use: it is shared, too.
	for _, want := range append(own.facts(), sharedBy(ipam.Reserved, own.reserved)...) {
		if err := r.Reserve(want); err != nil {
			return external, internal, err
		}
	}
	bits := defaultInternal.Bits()
	for _, wish := range []netip.Prefix{own.internal, own.external} {
		if wish.IsValid() {
			bits = wish.Bits()
		}
	}
	if external, err = own.chosenRange(r, ipam.ExternalCIDR, own.external, resized(defaultExternal, bits)); err != nil {
		return external, internal, err
	}
	internal, err = own.chosenRange(r, ipam.InternalCIDR, own.internal, resized(defaultInternal, bits))
	return external, internal, err
}

// chosenRange reserves the range that is wished for, exactly, or else the usual one or any that is free. A
// cluster that has one keeps it.
func (o ownRanges) chosenRange(r *ipam.Registry, purpose ipam.Purpose, wish, usual netip.Prefix) (netip.Prefix, error) {
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
			return wish, &steps.InputError{Err: fmt.Errorf("reserve %s: the length must be /%d to /%d", wish, WidestCIDR, NarrowestCIDR)}
		}
		if err := o.inUse.checkWish(purpose, wish); err != nil {
			return wish, err
		}
		err := r.Reserve(ipam.Reservation{Range: wish, Owner: ipam.Cluster, Purpose: purpose})
		return wish, err
	}
	got, err := o.inUse.acquire(r, ipam.Request{Owner: ipam.Cluster, Purpose: purpose, Preferred: usual})
	return got.Range, err
}

// remoteRanges are the ranges that a peer shows.
type remoteRanges struct {
	pods     []netip.Prefix
	external netip.Prefix
	underlay []netip.Prefix // where its nodes are
	inUse    inUses         // what it must not be reached by
}

// addresses are what a cluster's registry gave to a peering.
type addresses struct {
	pods     []records.Mapping
	external records.Mapping
	gateway  netip.Addr
	overlay  uint32 // virtual network identifier
}

// requests are those for all that a peer has.
func (peer remoteRanges) requests(owner ipam.Owner) []ipam.Request {
	var all []ipam.Request
	for _, p := range peer.pods {
		all = append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerPods, Real: p})
	}
	return append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerExternal, Real: peer.external})
}

// reservePeer finds ranges for all that a peer has: its real ones where they are free here, else others of the
// same size. Doing it again changes nothing. Ranges that the peer no longer has are released.
func reservePeer(r *ipam.Registry, peering string, internal netip.Prefix, peer remoteRanges) (addresses, error) {
	owner := ipam.Peering(peering)
	requests := peer.requests(owner)
	if err := releaseGone(r, owner, requests, peer.underlay); err != nil {
		return addresses{}, err
	}
	keepClear(r, owner, peer)
	// First all that are free, before the search for another could take one of them.
	for _, q := range requests {
		peer.inUse.prefer(r, q)
	}
	mappings := make([]records.Mapping, len(requests))
	for i, q := range requests {
		got, err := peer.inUse.acquire(r, q)
		if err != nil {
			return addresses{}, err
		}
		mappings[i] = records.Mapping{Real: q.Real, Seen: got.Range}
	}
	last := len(mappings) - 1
	a := addresses{pods: mappings[:last], external: mappings[last]}
	var err error
	if a.gateway, err = r.AcquireAddress(ipam.Request{Owner: owner, Purpose: ipam.GatewayAddress}, upperHalf(internal)); err != nil {
		return addresses{}, err
	}
	a.overlay = cidr.Offset(internal, a.gateway)
	return a, nil
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
func keepClear(r *ipam.Registry, owner ipam.Owner, peer remoteRanges) {
	for _, p := range peer.underlay {
		if cidr.Overlaps(p, append(slices.Clone(peer.pods), peer.external)) {
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

// restore reserves again what the fabric and the peerings use: an older registry, as of a manifest, may have taken the
// place of the one in which it was reserved. What others hold by now stays theirs: CheckAddresses tells.
func restore(r *ipam.Registry, f *records.Fabric, peerings []records.Peering) {
	for _, used := range (addressState{fabric: f, peerings: peerings}).wanted() {
		_ = r.Reserve(used)
	}
}

// addReservations is updateReservations for changes that take what is free. Peerings are read after the registry: one that is
// read, and removed meanwhile, releases what it holds later than that, which makes the update begin anew.
func addReservations(ctx context.Context, c *cluster.Cluster, f *records.Fabric, change func(*ipam.Registry) error) error {
	return inventory.UpdateReservations(ctx, c, func(r *ipam.Registry) error {
		peerings, err := inventory.Peerings(ctx, c)
		if err != nil {
			return err
		}
		restore(r, f, peerings)
		return change(r)
	})
}

// resized is the range of another length at the same place.
func resized(p netip.Prefix, bits int) netip.Prefix { return netip.PrefixFrom(p.Addr(), bits).Masked() }

// upperHalf is the half of an internal CIDR in which gateways have their addresses; the nodes have the lower.
func upperHalf(p netip.Prefix) netip.Prefix {
	_, upper := cidr.Halves(p)
	return upper
}
