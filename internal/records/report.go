package records

import (
	"errors"
	"fmt"
)

// DecodeReport decodes the report of a node in a Lease. Before decoding the text, it rejects a Lease without a holder
// (nil) or whose name has no number. It also rejects the report of a node other than the holder, or of a number other
// than the Lease's. An admission policy restricts nodes to their own Leases; DecodeReport restricts the
// contents.
func DecodeReport(lease string, holder *string, text string) (Node, error) {
	number, err := LeaseNumber(lease)
	switch {
	case err != nil:
		return Node{}, err
	case holder == nil:
		return Node{}, errors.New("no holder")
	}
	n, err := Decode[Node](text)
	switch {
	case err != nil:
		return n, err
	case *holder != n.Name:
		return n, fmt.Errorf("it reports of node %q, which does not hold it", n.Name)
	case number != n.Number:
		return n, fmt.Errorf("it reports number %d, which is not in its name", n.Number)
	}
	return n, nil
}
