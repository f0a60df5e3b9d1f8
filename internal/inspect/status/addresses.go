package status

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// AddressRange is a range of one cluster and the range by which the other cluster reaches it.
type AddressRange struct {
	Kind      string       `json:"kind"` // "pods" or "external"
	Original  netip.Prefix `json:"original"`
	ReachedAt netip.Prefix `json:"reachedAt"`
}

// Remapped reports whether the other cluster reaches the range at other addresses.
func (r AddressRange) Remapped() bool { return r.Original != r.ReachedAt }

// String returns the range by which it is reached, with the original one in parentheses if they differ.
func (r AddressRange) String() string {
	if !r.Remapped() {
		return fmt.Sprintf("%s %s", r.Kind, r.ReachedAt)
	}
	return fmt.Sprintf("%s %s (%s)", r.Kind, r.ReachedAt, r.Original)
}

// AddressRanges describes how the other cluster reaches the ranges of a cluster; nil if they are unknown.
func AddressRanges(pods []records.Mapping, external records.Mapping) []AddressRange {
	if len(pods) == 0 {
		return nil
	}
	var all []AddressRange
	for _, m := range pods {
		all = append(all, AddressRange{"pods", m.Real, m.Seen})
	}
	return append(all, AddressRange{"external", external.Real, external.Seen})
}

// ExposedHost is a host outside a cluster that a peer of the cluster may reach.
type ExposedHost struct {
	Host      netip.Addr `json:"host"`
	Address   netip.Addr `json:"address"`            // in the external CIDR of the host's cluster
	ReachedAt netip.Addr `json:"reachedAt,omitzero"` // by which the peer reaches it; zero if unknown
	Served    bool       `json:"served"`             // whether the gateways report that they forward its packets
}

// DescribeHost describes an exposed host in the record of a peering.
func DescribeHost(p records.Peering, e records.Exposed) ExposedHost {
	h := ExposedHost{Host: e.Host, Address: e.Address}
	if p.Local.Known() {
		h.ReachedAt = cidr.Swap(e.Address, p.Local.ExternalCIDR().Seen)
	}
	return h
}
