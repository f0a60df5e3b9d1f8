package records

import (
	"errors"
	"fmt"
)

// Witness is what a node reports of gateways that asked it to: it still can when a gateway's machine is lost. It stands
// in an annotation of the node's Lease.
type Witness struct {
	Version int `json:"version"`
	// Peerings has, by name, "" where the node's packets cross, else the fault.
	Peerings map[string]string `json:"peerings,omitempty"`
}

func (w Witness) identity() Identity { return Identity{Component: ComponentNode} }

func (w Witness) validate() error {
	var err error
	for peering, fault := range w.Peerings {
		if e := ValidateName(peering); e != nil || fault != "" && !printable.MatchString(fault) {
			err = errors.Join(err, e, fmt.Errorf("peering %q: fault %q: want printable characters", peering, fault))
		}
	}
	return err
}
