package probe

import (
	"hash/fnv"
	"net/netip"
	"time"
)

// Names of targets that are not pods. Names of nodes have no capital letters.
const (
	ClusterIP = "ClusterIP"
	NodePort  = "NodePort"
)

// Pod is a server in the peer, with the address by which this cluster reaches it.
type Pod struct {
	Node    string
	Address netip.Addr
}

// Plan is the configuration of all probes of a cluster.
type Plan struct {
	Pods    []Pod
	Port    uint16         // of the pods
	Service netip.AddrPort // Service with the pods as endpoints
	// NodePort is the port of the Service on nodes. Probes in a node's network query it at their own node; 0: none.
	NodePort uint16
	Hold     time.Duration
	Token    string // of the servers
}

// Targets returns the targets of the probe on a node: the Service, and at most MaxTargets pods. Probes of different
// nodes begin with different pods.
func (p Plan) Targets(node string, nodeIP netip.Addr) []Target {
	var targets []Target
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // writes to a hash do not fail
	for i := range min(len(p.Pods), MaxTargets) {
		pod := p.Pods[(int(hash.Sum32()%uint32(len(p.Pods)))+i)%len(p.Pods)]
		targets = append(targets, Target{Name: pod.Node, Node: pod.Node, Address: netip.AddrPortFrom(pod.Address, p.Port)})
	}
	targets = append(targets, Target{Name: ClusterIP, Address: p.Service})
	if p.NodePort > 0 {
		targets = append(targets, Target{Name: NodePort, Address: netip.AddrPortFrom(nodeIP, p.NodePort)})
	}
	for i := range targets {
		targets[i].Token, targets[i].Checks = p.Token, Checks(targets[i].Name, p.Hold)
	}
	return targets
}

// Checks returns the checks of a target, if connections are kept open for the duration hold.
func Checks(target string, hold time.Duration) []Check {
	checks := []Check{TCP}
	if target != ClusterIP && target != NodePort {
		checks = append(checks, UDP, Ping, FullSize, Oversize, Fragments)
	}
	if hold > 0 {
		checks = append(checks, Connection)
	}
	return checks
}
