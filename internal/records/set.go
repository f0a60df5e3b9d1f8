package records

// Set are the records of a cluster that the kernels of its nodes and gateways follow.
type Set struct {
	Fabric   *Fabric               // nil: liqonet is not installed
	Peerings []Peering             // sorted by name
	Gateways map[GatewayID]Gateway // those that have not reported are missing
	Nodes    []Node                // that report, sorted by name
}
