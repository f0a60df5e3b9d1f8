// Package translate answers how an address of one cluster is called in another to which liqonet connects it. It is
// what reflection needs: a virtual kubelet that reports pod addresses, a mirror of EndpointSlices. The answers
// come from the records that `liqoctl network connect` keeps in the cluster, see Decode; reading these records is
// the caller's part, there is no client in here.
//
// Every translation is 1:1 by range: an address keeps its host bits, and ranges that do not collide keep their
// addresses altogether. Four questions can be asked of a Translator, which stands for one peering:
//
//   - Import: the peer's own address, how is it called here?
//   - ImportedFrom: an address by which this cluster reaches the peer, what is it there?
//   - Export: an address of this cluster, how does the peer call it?
//   - ExportedFrom: an address by which the peer reaches this cluster, what is it here?
//
// Cluster asks ImportedFrom of all peerings at once: whose is this address? An address that belongs nowhere is an
// UnmappedError, never a guess. Values are immutable and safe for concurrent use.
package translate

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// Kind is what has an address.
type Kind string

// The kinds.
const (
	Pod Kind = "pod"
	// Node is a node of a cluster. To its peers it has an external address, in its own cluster the internal
	// address with the same host bits. The address of its network card is neither.
	Node Kind = "node"
	// Exposed is a host outside the cluster that was made reachable for peers.
	Exposed Kind = "exposed"
)

// Mapping is a range by its real addresses and by those under which the other cluster of a peering reaches it.
// Both have the same length.
type Mapping = cidr.Mapping

// Address is a translated address.
type Address struct {
	Given      netip.Addr `json:"address"`
	Translated netip.Addr `json:"translated"`
	Peer       string     `json:"peer"` // name of the peering
	Kind       Kind       `json:"kind"`
}

// UnmappedError says that an address belongs to none of the ranges that a question is about.
type UnmappedError struct {
	Address netip.Addr
	// What the address is not, such as `an address of peer "b"`.
	What string
}

func (e *UnmappedError) Error() string {
	return fmt.Sprintf("translate %s: not %s", e.Address, e.What)
}

// UntoldError says that a peering's record does not tell how the peer sees this cluster.
type UntoldError struct{ Peer string }

func (e *UntoldError) Error() string {
	return fmt.Sprintf("the record of peering %q does not tell how the peer sees this cluster", e.Peer)
}

// Hint says what completes the record.
func (e *UntoldError) Hint() string { return "liqoctl network connect --update" }

// UnknownPeerError says that there is no peering of that name.
type UnknownPeerError struct{ Peer string }

func (e *UnknownPeerError) Error() string { return fmt.Sprintf("no peering %q", e.Peer) }
