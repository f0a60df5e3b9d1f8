// Package datapath computes the desired state of the kernels of nodes and gateways from the records of a cluster. It is
// pure: helpers apply the states, and liqoctl compares those before and after a change.
//
// Package netops builds on Linux only, and so do the states. liqoctl for other systems shows no changes of kernels.
package datapath

// Change describes the changes in the kernel of a node or of a peering's gateway.
type Change struct {
	Node    string   `json:"node,omitempty"`
	Gateway string   `json:"gateway,omitempty"` // a records.GatewayID as text
	Steps   []string `json:"steps"`
}
