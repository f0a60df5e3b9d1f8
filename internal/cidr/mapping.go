package cidr

import "net/netip"

// Mapping is a range of one cluster: its real addresses, and those by which the other cluster reaches them. Both have
// the same length.
type Mapping struct {
	Real netip.Prefix `json:"real"`
	Seen netip.Prefix `json:"seen"`
}

// Exposed is a host outside a cluster, as the cluster's peers reach it.
type Exposed struct {
	Host    netip.Addr `json:"host"`    // its own address
	Address netip.Addr `json:"address"` // of the second half of the cluster's external CIDR
}

// Identity reports whether addresses are the same on both sides.
func (m Mapping) Identity() bool { return m.Real == m.Seen }
