// Package peering has the steps of init, connect, render and rotate: the changes that the command line makes in one or
// two clusters, their order, and the conditions for which it waits. Related operations have packages of their own:
// removal, expose, and internal/inspect.
//
// In scope are the decisions (names, endpoints, overlay, MTU, differences from the requested configuration) and the
// order of the steps. Out of scope are printing (progress is reported to a progress.Reporter, and results are returned
// as values) and the kernel (nodes and gateways bring it into the state that internal/records describes, and report).
//
// Every operation can be interrupted at any point and run again.
package peering

import (
	"net/netip"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
)

// Side is one cluster of an operation, with the user's options for it.
type Side struct {
	Cluster *kube.Cluster
	// Name is the cluster's name at its peers. "": the current name, else one derived from the kube context.
	Name string
	// Overrides replace discovered values.
	Overrides discover.Overrides
	// ExternalCIDR and InternalCIDR are used exactly as given. The zero value: the cluster's current ones, else the
	// defaults or, if these are in use, free ranges.
	ExternalCIDR, InternalCIDR netip.Prefix
	// Reserved are CIDRs never allocated as remapped CIDRs.
	Reserved []netip.Prefix
	// Pools are the pools for remapped CIDRs, in order of preference. nil: the cluster's current ones, else those of
	// RFC 1918.
	Pools []netip.Prefix
	// Gateways is the number of a peering's gateways in the cluster. 0: the current number; in a new peering, see
	// defaultGateways.
	Gateways int
}
