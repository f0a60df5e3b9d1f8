// Package kernels says which state the kernels of nodes and gateways should have for the records of a cluster. It is
// pure: helpers apply the states, and the dry run of a command compares those before and after it.
//
// Package netops builds on Linux only, and so do the states. liqoctl for other systems shows no changes of kernels.
package kernels

// Change is what changes in the kernel of a node, or of the gateway of a peering.
type Change struct {
	Node    string   `json:"node,omitempty"`
	Gateway string   `json:"gateway,omitempty"` // a records.GatewayID as text
	Steps   []string `json:"steps"`
}
