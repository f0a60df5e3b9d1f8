package records

import (
	"errors"
	"fmt"
	"net/netip"
)

// DecodeReport decodes the report of a node in a Lease. Before decoding the text, it rejects a Lease without a holder
// (nil) or whose name is no internal address. It also rejects the report of a node other than the holder, or of an
// address other than the Lease's. An admission policy restricts nodes to their own Leases; DecodeReport restricts the
// contents.
func DecodeReport(lease string, holder *string, text string) (Node, error) {
	address, err := HeldAddress(lease, holder)
	if err != nil {
		return Node{}, err
	}
	n, err := Decode[Node](text)
	switch {
	case err != nil:
		return n, err
	case *holder != n.Name:
		return n, fmt.Errorf("it reports of node %q, which does not hold it", n.Name)
	case address != n.Internal:
		return n, fmt.Errorf("it reports internal address %s, which it does not stand for", n.Internal)
	}
	return n, nil
}

// HeldAddress returns the internal address in the name of a Lease. A Lease without a holder (nil), or whose name is no
// address, belongs to no node, and its contents must not be decoded.
func HeldAddress(lease string, holder *string) (netip.Addr, error) {
	address, err := LeaseAddress(lease)
	if err == nil && holder == nil {
		err = errors.New("no holder")
	}
	return address, err
}
