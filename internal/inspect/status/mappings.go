package status

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// MappedRange is a range of one cluster and the range by which the other cluster reaches it.
type MappedRange struct {
	What     string       `json:"what"` // "pods" or "external"
	Real     netip.Prefix `json:"real"`
	Seen     netip.Prefix `json:"seen"`
	Identity bool         `json:"identity"`
}

// String returns the range by which it is reached, with the real range in parentheses if they differ.
func (m MappedRange) String() string {
	if m.Identity {
		return fmt.Sprintf("%s %s", m.What, m.Seen)
	}
	return fmt.Sprintf("%s %s (%s)", m.What, m.Seen, m.Real)
}

// MappedRanges describes how the other cluster reaches the ranges of a cluster; nil if they are unknown.
func MappedRanges(pods []records.Mapping, external records.Mapping) []MappedRange {
	if len(pods) == 0 {
		return nil
	}
	var all []MappedRange
	for _, m := range pods {
		all = append(all, MappedRange{What: "pods", Real: m.Real, Seen: m.Seen, Identity: m.Identity()})
	}
	return append(all, MappedRange{What: "external", Real: external.Real, Seen: external.Seen, Identity: external.Identity()})
}

// ExposedHost is a host outside a cluster that a peer of the cluster may reach.
type ExposedHost struct {
	Host    netip.Addr `json:"host"`
	Address netip.Addr `json:"address"`             // in the external CIDR of the host's cluster
	Seen    netip.Addr `json:"seenByPeer,omitzero"` // by which the peer reaches it; zero if unknown
	Served  bool       `json:"served"`              // whether the gateways report that they forward its packets
}

// DescribeHost describes an exposed host in the record of a peering.
func DescribeHost(p records.Peering, e records.Exposed) ExposedHost {
	h := ExposedHost{Host: e.Host, Address: e.Address}
	if p.Local.Known() {
		h.Seen = cidr.Swap(e.Address, p.Local.ExternalCIDR.Seen)
	}
	return h
}
