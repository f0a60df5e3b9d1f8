package records

import (
	"net/netip"
	"strings"
)

// DamageHint is the advice for a record that cannot be read.
const DamageHint = "it is left as it is: use a liqoctl of the version that wrote it, or restore the object"

// DefaultNamespace is where liqonet lives in a cluster unless a flag says otherwise.
const DefaultNamespace = "liqonet"

// Labels and annotations. Every object of liqonet has LabelComponent.
const (
	LabelComponent = "liqonet.io/component" // one of the Component constants
	LabelPeering   = "liqonet.io/peering"   // name of the peering that the object belongs to
	// Number of the gateway that the object belongs to, from 2 on: the first has none.
	LabelGateway   = "liqonet.io/gateway"
	LabelNode      = "liqonet.io/node" // the node that an object belongs to, as its helper finds it
	AnnotationNode = "liqonet.io/node" // on a Lease: a Node record
	// The run of liqoctl that created an object of a path test or of a verification.
	AnnotationRun = "liqonet.io/run"
	DataKey       = "record" // the ConfigMap key that holds a record
	// StateKey and ReasonKey hold the state of the peering, as the gateway sees it, for kubectl; nothing of liqonet
	// reads them.
	StateKey  = "state"
	ReasonKey = "reason"
)

// Values of LabelComponent.
const (
	ComponentFabric  = "fabric"  // the installation: namespace, fabric, node helper
	ComponentIPAM    = "ipam"    // reservations
	ComponentPeering = "peering" // a peering's record and keys
	ComponentGateway = "gateway" // a peering's gateway: pods, Service, where it runs
	ComponentStatus  = "status"  // what a gateway measures
	ComponentNode    = "node"    // a node's report
	ComponentLock    = "lock"    // the Lease that one run of liqoctl holds while it writes
	ComponentVerify  = "verify"  // DaemonSet that looks for remaining state on nodes, while it runs
	// DaemonSets of a path test, while it runs: servers, probes in pods, and probes in the network of nodes.
	ComponentTestServer = "test-server"
	ComponentTestPod    = "test-pod"
	ComponentTestNode   = "test-node"
)

// Names of the objects.
const (
	FabricName = "fabric"
	IPAMName   = "ipam"
	LockName   = "liqoctl" // Lease
	VerifyName = "verify"  // DaemonSet that looks for remaining state on nodes
	NodeName   = "node"    // DaemonSet, ServiceAccount, roles of the node helper
)

// Keys of a gateway's Secret.
const (
	PrivateKeyKey   = "privateKey"
	PresharedKeyKey = "presharedKey"
	// CreatedKey holds when the key pair was made, as RFC 3339.
	CreatedKey = "created"
)

// PeeringName names the ConfigMap of a peering, and the Secret of its first gateway.
func PeeringName(peering string) string { return peeringPrefix + "-" + peering }

// ServiceName names the Service of a server's gateways, and what else they have in common.
func ServiceName(peering string) string { return gatewayPrefix + "-" + peering }

// AddressLeaseName names the Lease whose holder, a node, has an internal address. That the API server
// creates a name once only is what makes the address unique.
func AddressLeaseName(a netip.Addr) string { return leasePrefix + a.String() }

// LeaseAddress returns the internal address that a Lease of that name stands for.
func LeaseAddress(name string) (netip.Addr, error) {
	return netip.ParseAddr(strings.TrimPrefix(name, leasePrefix))
}

const leasePrefix = "node-"
