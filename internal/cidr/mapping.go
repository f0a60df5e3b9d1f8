package cidr

import "net/netip"

// Mapping is a range of one cluster with its real addresses and the addresses by which the other cluster reaches them.
// Both have the same length.
type Mapping struct {
	Real netip.Prefix `json:"real"`
	Seen netip.Prefix `json:"seen"`
}

// Exposed is a host outside a cluster with the address by which the cluster's peers reach it.
type Exposed struct {
	Host    netip.Addr `json:"host"`    // its own address
	Address netip.Addr `json:"address"` // in the second half of the cluster's external CIDR
}

// Identity reports whether the range is not remapped.
func (m Mapping) Identity() bool { return m.Real == m.Seen }
