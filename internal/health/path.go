package health

import (
	"fmt"
	"slices"
)

var pathKinds = []Kind{{
	Code: "LQ-PATH-VERIFIED",
	What: "Full-size packets of every node are answered by a node of the peer, every two seconds.",
	Needs: []string{
		"LQ-PEER-EXISTS", "LQ-PEER-AGREES", "LQ-OVERLAY-ECHO", "LQ-OVERLAY-MTU", "LQ-TUNNEL-ECHO", "LQ-TUNNEL-LOSS", "LQ-TUNNEL-MTU", "LQ-NODES-PLUGIN",
	},
	Cause:  "A firewall drops what the gateways' pods send to the node by UDP 6091, or what nodes forward; the network plugin bypasses the kernel; or large packets are lost on the way.",
	Fix:    "liqoctl network test --context CONTEXT --remote-context REMOTE shows which packets are lost. See docs/troubleshooting.md.",
	late:   true, // witnesses report independently
	cutOff: Warning,
	find: func(g *gateway) []Finding {
		unproven := g.missing(g.unproven, "no answer from nodes of the peer to node %s")
		if g.cut { // what nodes miss follows from it
			atMost(Note, unproven)
		}
		return slices.Concat(unproven, g.witnessed())
	},
}}

// witnessed returns the faults according to the witnesses: the gateway is down if all of them miss it, or the peer
// behind it. A node from which the gateway misses echoes or answers of the peer is not a witness, because the gateway
// reports that path itself. The gateway's own node is a witness only if there is no other: if it is lost, its last
// report is that the path works.
func (g *gateway) witnessed() (faults []Finding) {
	witnesses := slices.DeleteFunc(slices.Clone(g.Nodes), func(name string) bool {
		_, reports := g.Witnesses[name]
		n := Node(g.Status, name)
		return !reports || !echoes(g.Status, n) || !proven(g.Status, n)
	})
	if len(witnesses) > 1 {
		witnesses = slices.DeleteFunc(witnesses, func(name string) bool { return name == g.GatewayNode })
	}
	for _, name := range witnesses {
		if fault := g.Witnesses[name]; fault != "" {
			faults = append(faults, Finding{Level: levelDegraded, Subject: Subject{Node: name}, Text: fmt.Sprintf("node %s reports: %s", name, fault)})
		}
	}
	if len(faults) == len(witnesses) {
		for i := range faults {
			faults[i].Level = levelDown
		}
	}
	return faults
}
