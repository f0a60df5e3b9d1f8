// Package choose selects the ranges that a cluster uses for itself and for its peers, in a registry of reservations
// (package ipam). It avoids addresses in use around the cluster, and finds problems with existing reservations. It has
// no client: its callers read the cluster.
package choose

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Ranges are the ranges of a cluster without liqonet.
type Ranges struct{ Pods, Services, Nodes []netip.Prefix }

// Own has the ranges of a cluster and those that the user requests for it.
type Own struct {
	Ranges
	Reserved           []netip.Prefix
	External, Internal netip.Prefix   // zero value: not requested
	Pools              []netip.Prefix // nil: those of the registry
	InUse              Uses           // addresses that the external and internal CIDR must avoid
}

// facts returns the reservations for ranges that the cluster has. They are shared: in flat networks, pods and nodes
// have addresses in one range.
func (o Ranges) facts() []ipam.Reservation {
	return slices.Concat(
		sharedBy(ipam.PodCIDR, o.Pods), sharedBy(ipam.ServiceCIDR, o.Services), sharedBy(ipam.NodeNetwork, o.Nodes))
}

// sharedBy returns shared reservations of the cluster for one purpose.
func sharedBy(purpose ipam.Purpose, ranges []netip.Prefix) []ipam.Reservation {
	all := make([]ipam.Reservation, len(ranges))
	for i, p := range ranges {
		all[i] = ipam.Reservation{Range: p.Masked(), Owner: ipam.Cluster, Purpose: purpose, Shared: true}
	}
	return all
}

// ReserveOwn reserves a cluster's own ranges and returns its external and internal CIDR. It is idempotent. It releases
// ranges that the cluster no longer has, and keeps those that the user reserved.
func ReserveOwn(r *ipam.Registry, own Own) (external, internal netip.Prefix, err error) {
	if own.Pools != nil {
		if err := r.SetPools(own.Pools...); err != nil {
			return external, internal, err
		}
	}
	for purpose, stay := range map[ipam.Purpose][]netip.Prefix{
		ipam.PodCIDR: own.Pods, ipam.ServiceCIDR: own.Services, ipam.NodeNetwork: own.Nodes,
	} {
		if err := releaseOthers(r, ipam.Cluster, oneOf(stay), purpose); err != nil {
			return external, internal, err
		}
	}
	// A range that the user excludes may be in use: it is shared, too.
	for _, want := range append(own.facts(), sharedBy(ipam.Reserved, own.Reserved)...) {
		if err := r.Reserve(want); err != nil {
			return external, internal, err
		}
	}
	bits := defaultInternal.Bits()
	for _, requested := range []netip.Prefix{own.Internal, own.External} {
		if requested.IsValid() {
			bits = requested.Bits()
		}
	}
	if external, err = own.chosenRange(r, ipam.ExternalCIDR, own.External, resized(defaultExternal, bits)); err != nil {
		return external, internal, err
	}
	internal, err = own.chosenRange(r, ipam.InternalCIDR, own.Internal, resized(defaultInternal, bits))
	return external, internal, err
}

// chosenRange reserves exactly the requested range, or else the default one or any free one. A cluster that has a range
// keeps it.
func (o Own) chosenRange(r *ipam.Registry, purpose ipam.Purpose, requested, usual netip.Prefix) (netip.Prefix, error) {
	if held := r.Held(ipam.Cluster, purpose); len(held) > 0 {
		if requested.IsValid() && held[0].Range != requested {
			return netip.Prefix{}, hint.With(
				fmt.Errorf("reserve %s: the %s is already %s", requested, held[0].Use(), held[0].Range),
				"it cannot change while liqonet is installed: liqoctl network reset")
		}
		return held[0].Range, nil
	}
	if requested.IsValid() {
		if requested.Bits() < records.WidestCIDR || requested.Bits() > records.NarrowestCIDR {
			return requested, fmt.Errorf("reserve %s: the length must be /%d to /%d", requested, records.WidestCIDR, records.NarrowestCIDR)
		}
		if err := o.InUse.checkRequested(purpose, requested); err != nil {
			return requested, err
		}
		err := r.Reserve(ipam.Reservation{Range: requested, Owner: ipam.Cluster, Purpose: purpose})
		return requested, err
	}
	got, err := o.InUse.acquire(r, ipam.Request{Owner: ipam.Cluster, Purpose: purpose, Preferred: usual})
	return got.Range, err
}

// Remote has the ranges of a peer.
type Remote struct {
	Pods     []netip.Prefix
	External netip.Prefix
	Underlay []netip.Prefix // of its nodes
	InUse    Uses           // addresses that the remapped ranges must avoid
}

// Assigned has the ranges that a cluster's registry assigned to a peering.
type Assigned struct {
	Pods     []records.Mapping
	External []records.Mapping
}

// requests returns the requests for all ranges of a peer.
func (peer Remote) requests(owner ipam.Owner) []ipam.Request {
	var all []ipam.Request
	for _, p := range peer.Pods {
		all = append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerPods, Real: p})
	}
	return append(all, ipam.Request{Owner: owner, Purpose: ipam.PeerExternal, Real: peer.External})
}

// ReservePeer assigns ranges to all ranges of a peer: the same ones if they are free in this cluster, else others of
// the same size. It is idempotent. It releases ranges that the peer no longer has.
func ReservePeer(r *ipam.Registry, peering string, peer Remote) (Assigned, error) {
	owner := ipam.Peering(peering)
	requests := peer.requests(owner)
	requested := func(h ipam.Reservation) bool {
		return slices.ContainsFunc(requests, func(q ipam.Request) bool { return q.Purpose == h.Purpose && q.Real == h.Real })
	}
	if err := releaseOthers(r, owner, requested, ipam.PeerPods, ipam.PeerExternal); err != nil {
		return Assigned{}, err
	}
	if err := releaseOthers(r, owner, oneOf(peer.Underlay), ipam.PeerUnderlay); err != nil {
		return Assigned{}, err
	}
	keepClear(r, owner, peer)
	// Reserve all free ranges first, because the search for others could choose one of them.
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
	return Assigned{Pods: mappings[:last], External: mappings[last:]}, nil
}

// keepClear excludes the networks of the peer's nodes, which contain its endpoints, from the ranges for pods. It skips
// networks that are already reserved, where this would not help: the packets of a gateway itself never use the routes
// of a peering. Flat networks, whose nodes have addresses in the pod CIDR, are an example.
func keepClear(r *ipam.Registry, owner ipam.Owner, peer Remote) {
	for _, p := range peer.Underlay {
		if cidr.Overlaps(p, append(slices.Clone(peer.Pods), peer.External)) {
			continue
		}
		// The only possible error is a conflict, see above.
		_ = r.Reserve(ipam.Reservation{Range: p, Owner: owner, Purpose: ipam.PeerUnderlay, Shared: true})
	}
}

// releaseOthers releases an owner's reservations for some purposes, except those that stay.
func releaseOthers(r *ipam.Registry, owner ipam.Owner, stays func(ipam.Reservation) bool, purposes ...ipam.Purpose) error {
	for _, h := range r.Held(owner, purposes...) {
		if stays(h) {
			continue
		}
		if err := r.ReleaseRange(owner, h.Purpose, h.Range); err != nil {
			return err
		}
	}
	return nil
}

// oneOf reports of a reservation whether its range is one of these.
func oneOf(ranges []netip.Prefix) func(ipam.Reservation) bool {
	return func(h ipam.Reservation) bool { return slices.Contains(ranges, h.Range) }
}

// Restore reserves the ranges that the fabric and the peerings use again: an older registry, for example from a
// manifest, may have replaced the one with these reservations. It does not change reservations of other owners;
// State.Findings reports the conflict.
func Restore(r *ipam.Registry, f *records.Fabric, peerings []records.Peering) {
	own := Desired(Ranges{}, Ranges{}, f)
	for _, used := range (State{Fabric: f, Peerings: peerings, Own: own}).desired() {
		_ = r.Reserve(used)
	}
}

// resized returns the range with another length at the same place.
func resized(p netip.Prefix, bits int) netip.Prefix { return netip.PrefixFrom(p.Addr(), bits).Masked() }

// Desired returns the ranges of a cluster: those found, except that the ranges in the fabric stay while they contain
// them, so that changes of nodes change nothing. overridden has the ranges that the user specifies: they are found as
// they are, and replace those in the fabric.
func Desired(found, overridden Ranges, fabric *records.Fabric) Ranges {
	if fabric == nil {
		return found
	}
	keep := func(seen *[]netip.Prefix, override, recorded []netip.Prefix) {
		outside := func(p netip.Prefix) bool { return !cidr.Within(p, recorded) }
		if override == nil && !slices.ContainsFunc(*seen, outside) {
			*seen = recorded
		}
	}
	keep(&found.Pods, overridden.Pods, fabric.PodCIDRs)
	keep(&found.Services, overridden.Services, fabric.ServiceCIDRs)
	keep(&found.Nodes, overridden.Nodes, fabric.NodeNetworks)
	return found
}

// Default ranges of a cluster, if neither the user nor an earlier run chose others.
var (
	defaultExternal = netip.MustParsePrefix("10.70.0.0/16")
	defaultInternal = netip.MustParsePrefix("10.80.0.0/16")
)
