package status

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// MappedRange says how a range of the peer is reached from this side.
type MappedRange struct {
	What     string       `json:"what"` // "pods" or "external"
	Real     netip.Prefix `json:"real"`
	Seen     netip.Prefix `json:"seen"`
	Identity bool         `json:"identity"`
}

// String writes the range as it is reached, with the real one if it is another.
func (m MappedRange) String() string {
	if m.Identity {
		return fmt.Sprintf("%s %s", m.What, m.Seen)
	}
	return fmt.Sprintf("%s %s (%s)", m.What, m.Seen, m.Real)
}

// MappedRanges describes how the ranges of a cluster are reached from the other; none where they are not known.
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
	Address netip.Addr `json:"address"`             // of the external CIDR of the host's cluster
	Seen    netip.Addr `json:"seenByPeer,omitzero"` // by which the peer reaches it; the zero value: not known here
	Served  bool       `json:"served"`              // the gateway says that it lets packets pass
}

// DescribeHost describes a host of a peering's document.
func DescribeHost(p records.Peering, e records.Exposed) ExposedHost {
	h := ExposedHost{Host: e.Host, Address: e.Address}
	if p.Local.Known() {
		h.Seen = cidr.Swap(e.Address, p.Local.ExternalCIDR.Seen)
	}
	return h
}
