package records

import (
	"fmt"
	"strconv"
	"strings"
)

// DamageHint is the hint for a record that does not decode.
const DamageHint = "it is left unchanged: use a liqoctl of the version that wrote it, or restore the object"

// DefaultNamespace is the namespace of liqonet in a cluster, unless set by a flag.
const DefaultNamespace = "liqonet"

// Labels and annotations. Every object of liqonet has LabelComponent.
const (
	LabelComponent = "liqonet.io/component" // one of the Component constants
	LabelPeering   = "liqonet.io/peering"   // name of the peering that the object belongs to
	// Number of the gateway that the object belongs to, for gateways 2 and above. Objects of gateway 1 have no such
	// label.
	LabelGateway   = "liqonet.io/gateway"
	LabelNode      = "liqonet.io/node" // the node that an object belongs to; the node's helper selects by it
	AnnotationNode = "liqonet.io/node" // on a Lease: a Node record
	// ID of the run of liqoctl that created the ConfigMap of a record or the objects of a path test or verification.
	AnnotationRun = "liqonet.io/run"
	DataKey       = "record" // the ConfigMap key that holds a record
	// StateKey and ReasonKey hold the peering's state as reported by the gateway, for kubectl users. liqonet does not
	// read them.
	StateKey  = "state"
	ReasonKey = "reason"
)

// Values of LabelComponent.
const (
	ComponentFabric  = "fabric"  // the installation: namespace, fabric, node helper
	ComponentIPAM    = "ipam"    // reservations
	ComponentPeering = "peering" // a peering's record and keys
	ComponentGateway = "gateway" // a peering's gateway: pods, Service, location
	ComponentStatus  = "status"  // a gateway's measurements
	ComponentOffer   = "offer"   // what a peer knows of a cluster; in no object
	ComponentNode    = "node"    // a node's report
	ComponentLock    = "lock"    // the Lease that a run of liqoctl holds while it writes
	ComponentVerify  = "verify"  // DaemonSet that searches nodes for remaining state, while it runs
	// DaemonSets of a path test, while it runs: servers, probes in pods, and probes in the host network.
	ComponentTestServer = "test-server"
	ComponentTestPod    = "test-pod"
	ComponentTestNode   = "test-node"
)

// Names of the objects.
const (
	FabricName = "fabric"
	IPAMName   = "ipam"
	LockName   = "liqoctl" // Lease
	VerifyName = "verify"  // DaemonSet that searches nodes for remaining state
	NodeName   = "node"    // DaemonSet, ServiceAccount, roles of the node helper
)

// CreatedKey is the creation time of the keys in a gateway's Secret, in RFC 3339 format.
const CreatedKey = "created"

// PeeringName is the name of a peering's ConfigMap and of the Secret of its first gateway.
func PeeringName(peering string) string { return peeringPrefix + "-" + peering }

// ServiceName is the name of the Service of a server's gateways and of the other objects that they share.
func ServiceName(peering string) string { return gatewayPrefix + "-" + peering }

// WebSocketName is the name of the Service of a server's gateways for WebSocket, of its Ingress and of the Ingress's
// Secret for TLS.
func WebSocketName(peering string) string { return webSocketPrefix + "-" + peering }

// WebSocketPortName is the name of a gateway's port for WebSocket in that Service and in its pod; no other pod has a
// port of that name.
func WebSocketPortName(gateway int) string {
	if gateway == 1 {
		return webSocketPrefix
	}
	return webSocketPrefix + strconv.Itoa(gateway)
}

// WebSocketPath is the path of a gateway at an Ingress; peering is its name in the server's cluster.
func WebSocketPath(peering string, gateway int) string {
	return fmt.Sprintf("/liqonet/%s/%d", peering, gateway)
}

// NodeLeaseName is the name of the Lease for a node's number; its holder is the node. Numbers are unique because the
// API server rejects a second object of the same name.
func NodeLeaseName(number int) string { return leasePrefix + strconv.Itoa(number) }

// LeaseNumber returns the number in the name of a node's Lease.
func LeaseNumber(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, leasePrefix))
	if err != nil || n < 1 || n > maxNode || NodeLeaseName(n) != name {
		return 0, fmt.Errorf("name %q of a Lease: want %sN, with a number of 1 to %d", name, leasePrefix, maxNode)
	}
	return n, nil
}

const leasePrefix = "node-"
