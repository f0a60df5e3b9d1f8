package peering

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// wantedRanges merges what was discovered with what the cluster's fabric says already: a recorded range that
// covers everything seen stays, so that nodes which come and go change nothing. What the user told is taken as it is.
func wantedRanges(d cluster.Discovery, o cluster.Overrides, fabric *records.Fabric) ownRanges {
	own := ownRanges{pods: d.PodCIDRs.Prefixes, services: d.ServiceCIDRs.Prefixes, nodes: d.NodeNetworks.Prefixes}
	if fabric == nil {
		return own
	}
	keep := func(seen *[]netip.Prefix, told, recorded []netip.Prefix) {
		if told == nil && coversAll(recorded, *seen) {
			*seen = recorded
		}
	}
	keep(&own.pods, o.PodCIDRs, fabric.PodCIDRs)
	keep(&own.services, o.ServiceCIDRs, fabric.ServiceCIDRs)
	keep(&own.nodes, o.NodeNetworks, fabric.NodeNetworks)
	return own
}

// coversAll reports whether each inner range lies in one of the outer.
func coversAll(outer, inner []netip.Prefix) bool {
	for _, p := range inner {
		lies := func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) }
		if !slices.ContainsFunc(outer, lies) {
			return false
		}
	}
	return true
}

// wantedFabric is a cluster's fabric as it should be before its nodes have reported: what only they can tell is
// taken over from the fabric that is there.
func (s *site) wantedFabric() records.Fabric {
	f := records.Fabric{
		Version: records.SchemaVersion, ClusterID: s.id, Name: s.name,
		PodCIDRs: s.own.pods, ServiceCIDRs: s.own.services, NodeNetworks: s.own.nodes,
		ExternalCIDR: s.own.external, InternalCIDR: s.own.internal,
		Overlay: records.Overlay{Port: overlayPort}, CNI: s.discovery.CNI,
	}
	if have := s.found.fabric; have != nil {
		f.Overlay, f.MTU, f.AllowForward = have.Overlay, have.MTU, have.AllowForward
	}
	if s.AllowForward != nil {
		f.AllowForward = *s.AllowForward
	}
	return f
}

// withReports fills in what the nodes tell: overlay and MTU. The MTU only ever falls: a node that is away for a
// moment must not make it rise.
func withReports(f records.Fabric, nodes []records.Node, wish records.OverlayKind) (records.Fabric, error) {
	kind, err := chooseOverlay(nodes, wish, f.Overlay.Kind)
	if err != nil {
		return f, err
	}
	f.Overlay.Kind = kind
	if mtu := smallestMTU(nodes); f.MTU == 0 || mtu > 0 && mtu < f.MTU {
		f.MTU = mtu
	}
	return f, nil
}
