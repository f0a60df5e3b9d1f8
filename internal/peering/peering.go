// Package peering has the steps of init, connect and render: what the command line does to the API servers of one
// cluster or two, in which order, and what it waits for. The other operations have packages of their own: removal,
// hosts, status, addresses.
//
// In scope are the decisions (names, endpoints, overlay, MTU, what differs from a wish) and the order of the steps.
// Printing is not: progress goes to a steps.Reporter, and what was reached is returned as a value. Neither is the
// kernel: nodes and gateways bring it into the state that the records describe (internal/records), and report.
//
// Every operation can be interrupted anywhere and run again.
package peering

import (
	"net/netip"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
)

// Side is one cluster in an operation, and what the user says of it.
type Side struct {
	Cluster *kube.Cluster
	// Name is what peers call the cluster. "": the name it has already, else one made from the kube context.
	Name string
	// Overrides replace discovery.
	Overrides discover.Overrides
	// ExternalCIDR and InternalCIDR are used exactly as given. The zero value: those the cluster has already,
	// else the defaults or, where these are taken, free ranges.
	ExternalCIDR, InternalCIDR netip.Prefix
	// Reserved ranges are never given to a peer.
	Reserved []netip.Prefix
	// Pools are the ranges of which free ones are taken, the first with room first. nil: those the cluster has
	// already, else those of RFC 1918.
	Pools []netip.Prefix
	// Gateways is how many a peering has here. 0: as many as it has already, else one.
	Gateways int
}
