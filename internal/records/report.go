package records

import "fmt"

// DecodeReport decodes what a node writes to a Lease, and refuses a report that tells of another node than the one
// that holds the Lease (nil: none), or of another internal address than the Lease stands for. An admission policy
// keeps nodes to Leases of their own, and this to what they may say there.
func DecodeReport(lease string, holder *string, text string) (Node, error) {
	n, err := Decode[Node](text)
	if err != nil {
		return n, err
	}
	if holder == nil || *holder != n.Name {
		return n, fmt.Errorf("it reports of node %q, which does not hold it", n.Name)
	}
	if a, err := LeaseAddress(lease); err != nil || a != n.Internal {
		return n, fmt.Errorf("it reports internal address %s, which it does not stand for", n.Internal)
	}
	return n, nil
}
