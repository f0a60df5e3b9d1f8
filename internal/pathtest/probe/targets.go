package probe

import (
	"hash/fnv"
	"net/netip"
	"time"
)

// Names of targets that are no pods. Names of nodes have no capital letters.
const (
	ClusterIP = "ClusterIP"
	NodePort  = "NodePort"
)

// Pod is a server in the peer, as this cluster reaches it.
type Pod struct {
	Node    string
	Address netip.Addr
}

// Plan is what all probes of a cluster ask.
type Plan struct {
	Pods    []Pod
	Port    uint16         // of the pods
	Service netip.AddrPort // that leads to them
	// NodePort is the port of the Service on nodes. Probes in a node's network ask for it at their own node; 0: none
	// does.
	NodePort uint16
	Hold     time.Duration
	Token    string // of the servers
}

// Targets are what the probe of a node asks: the Service, and at most MaxTargets pods. Probes of different nodes begin
// with different pods.
func (p Plan) Targets(node string, nodeIP netip.Addr) []Target {
	var targets []Target
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // a hash takes everything
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

// Checks are those of a target of that name, where connections are kept open for a time.
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
