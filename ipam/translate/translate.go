// Package translate translates addresses between the clusters of a liqonet peering. It is for components that reflect
// resources: a virtual kubelet that reports pod addresses, a controller that mirrors EndpointSlices. The translations
// are computed from the records that `liqoctl network connect` stores in the cluster; see Decode. The package has no
// client: the caller reads the records.
//
// All translations are 1:1 by range: an address keeps its host bits, and ranges that are not remapped keep their
// addresses. A Translator serves one peering and has four methods:
//
//   - Import translates the peer's own address into the address by which this cluster reaches it.
//   - ImportedFrom is the inverse of Import.
//   - Export translates an address of this cluster into the address by which the peer reaches it.
//   - ExportedFrom is the inverse of Export.
//
// Cluster applies ImportedFrom to all peerings at once, to find the peer to which an address belongs. An address that
// is in no range is an UnmappedError. Values are immutable and safe for concurrent use.
package translate

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// Kind is the kind of the owner of an address.
type Kind string

const (
	// Pod is an address of a pod.
	Pod Kind = "pod"
	// Node is a node of a cluster. Peers reach it by its external address. In its own cluster it has the internal
	// address with the same host bits. The address of its network card is neither of them.
	Node Kind = "node"
	// Exposed is a host outside the cluster that is exposed to peers.
	Exposed Kind = "exposed"
)

// Mapping is a range with its real addresses and the addresses by which the other cluster of a peering reaches it. Both
// have the same length.
type Mapping = cidr.Mapping

// Address is a translated address.
type Address struct {
	Given      netip.Addr `json:"address"`
	Translated netip.Addr `json:"translated"`
	Peer       string     `json:"peer"` // name of the peering
	Kind       Kind       `json:"kind"`
}

// UnmappedError means that an address is in none of the ranges of a translation.
type UnmappedError struct {
	Address netip.Addr
	// What describes the expected ranges, such as `an address of peer "b"`.
	What string
}

func (e *UnmappedError) Error() string {
	return fmt.Sprintf("translate %s: not %s", e.Address, e.What)
}

// LocalUnknownError means that the record of a peering does not contain the addresses by which the peer reaches this
// cluster.
type LocalUnknownError struct{ Peer string }

func (e *LocalUnknownError) Error() string {
	return fmt.Sprintf("the record of peering %q does not contain the addresses by which the peer reaches this cluster", e.Peer)
}

// Hint returns the command that completes the record.
func (e *LocalUnknownError) Hint() string { return "liqoctl network connect --update" }

// UnknownPeerError means that there is no peering of that name.
type UnknownPeerError struct{ Peer string }

func (e *UnknownPeerError) Error() string { return fmt.Sprintf("no peering %q", e.Peer) }
