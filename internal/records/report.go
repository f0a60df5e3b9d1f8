package records

import (
	"errors"
	"fmt"
	"net/netip"
)

// DecodeReport decodes what a node writes to a Lease. It refuses, before it decodes the text, a Lease that nobody holds
// (nil) or whose name is no internal address; and then a report of another node than the holder, or of another address
// than the Lease's. An admission policy keeps nodes to Leases of their own, and this to what they may report there.
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

// HeldAddress returns the internal address that a Lease stands for. A Lease without a holder (nil), or with a name that
// is no address, is none of a node: what it carries is not decoded.
func HeldAddress(lease string, holder *string) (netip.Addr, error) {
	address, err := LeaseAddress(lease)
	if err == nil && holder == nil {
		err = errors.New("no holder")
	}
	return address, err
}
