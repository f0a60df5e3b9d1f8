package records

import (
	"maps"
	"slices"
)

// Witness is what a node reports of gateways that asked it to: it still can when a gateway's machine is lost. It stands
// in an annotation of the node's Lease.
type Witness struct {
	Version int `json:"version"`
	// Gateways has "" for each by which the node's packets cross, else the fault.
	Gateways map[GatewayID]string `json:"peerings,omitempty"`
}

func (w Witness) identity() Identity { return Identity{Component: ComponentNode} }

func (w Witness) validate() error {
	return each(slices.Collect(maps.Keys(w.Gateways)), func(gateway GatewayID) error {
		fault := w.Gateways[gateway]
		return unless(fault == "" || printable.MatchString(fault), "gateway %s: fault %q: want printable characters", gateway, fault)
	})
}
