package records

// Set has the records of a cluster that define the desired state of the kernels of its nodes and gateways.
type Set struct {
	Fabric   *Fabric               // nil: liqonet is not installed
	Peerings []Peering             // sorted by name
	Gateways map[GatewayID]Gateway // without those that have not reported
	Nodes    []Node                // those that report, sorted by name
}
