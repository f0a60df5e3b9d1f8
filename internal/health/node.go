package health

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

var nodeKinds = []Kind{
	{
		Code:  "LQ-NODES-READY",
		What:  "All nodes that run helpers are Ready.",
		Needs: []string{"LQ-API-REACHABLE"},
		Cause: "A node is down, or its kubelet does not reach the API server.",
		Fix:   "kubectl --context CONTEXT get nodes; kubectl --context CONTEXT describe node NODE",
		find: func(g *gateway) []Finding {
			if len(g.Nodes) > 0 {
				return nil
			}
			return []Finding{{Level: levelDegraded, Text: "no node is Ready"}}
		},
	},
	{
		Code:  "LQ-NODES-REFUSED",
		What:  "Every node serves the peering as its record says, and no foreign rule or route takes packets for the peer.",
		Needs: []string{"LQ-NODES-REPORT", "LQ-OBJECTS-DAMAGED", "LQ-OBJECTS-INTACT", "LQ-NODES-KERNEL"},
		Cause: "The record has values that helpers do not accept, for example ranges that would take an address of the node away. Or another program, such as a " +
			"VPN, has added a routing rule before liqonet's (priority 103 and 104), or a route to a table that such a rule leads to.",
		Fix: Update + ". For a foreign rule or route, which is named: on that node, ip rule and ip route show table TABLE show it; let its program leave out the peer's ranges, or give the rule a priority above 104.",
		find: func(g *gateway) (findings []Finding) {
			for name, n := range Nodes(g.Status, g.Nodes) {
				if n.Refused != "" {
					findings = append(findings, ofNode(levelDegraded, name, "node %s refuses the peering: "+n.Refused))
				}
			}
			return findings
		},
	},
	{
		Code:  "LQ-OVERLAY-ECHO",
		What:  "Every node reaches every gateway by the overlay (UDP 6091): the echoes that nodes send each second arrive, and so do the answers.",
		Needs: []string{"LQ-NODES-HELPER", "LQ-NODES-REPORT", "LQ-NODES-KERNEL", "LQ-NODES-FORWARD", "LQ-NODES-REFUSED", "LQ-GATEWAY-RUNNING", "LQ-GATEWAY-REPORT", "LQ-GATEWAY-APPLIED"},
		Cause: "A firewall or NetworkPolicy blocks UDP 6091 between the node and the pod of the gateway, a route or rule of the node that is named leads " +
			"elsewhere, or the helper on the node hangs.",
		Fix: "Allow UDP 6091 between nodes and pods (docs/requirements.md, Ports). On the node that is named, ip route get ADDRESS, with the address of the " +
			"gateway's pod (kubectl --context CONTEXT -n NAMESPACE get pods -o wide), must show the route of other pods. Read the log of the helper on that node.",
		find: func(g *gateway) []Finding {
			return g.missing(g.silent, "no echo between gateway and node %s")
		},
	},
	{
		Code:  "LQ-OVERLAY-PROBE",
		What:  "Probes of the path MTU (UDP 6092) from nodes to gateways are answered.",
		Needs: []string{"LQ-OVERLAY-ECHO"},
		Cause: "A firewall or NetworkPolicy blocks UDP 6092 between the node and the pod of the gateway. Packets cross, but a smaller MTU is not noticed.",
		Fix:   "Allow UDP 6092 between nodes and pods (docs/requirements.md, Ports).",
		find: func(g *gateway) (findings []Finding) {
			for name, n := range Nodes(g.Status, g.Nodes) {
				if n.Path.Asked && n.Path.MTU == 0 {
					findings = append(findings, ofNode(Note, name, "the gateway does not answer probes of node %s"))
				}
			}
			return findings
		},
	},
	{
		Code:  "LQ-OVERLAY-MTU",
		What:  "Full-size packets, with 50 bytes of encapsulation, fit the path from every node to its gateway.",
		Needs: []string{"LQ-OVERLAY-ECHO"},
		Cause: "The MTU of a link between nodes is smaller than when the peering was made.",
		Fix:   Update + " adapts the MTU.",
		find: func(g *gateway) (findings []Finding) {
			for name, n := range Nodes(g.Status, g.Nodes) {
				if size := NarrowNode(*n, g.MTU); size > 0 {
					f := ofNode(levelDegraded, name, fmt.Sprintf(
						"packets of %d bytes do not fit the path between the gateway and node %%s, which carries %d: enough for %d", g.MTU, size, size-OverlayOverhead))
					f.Figures = Figures{Size: size, Needed: g.MTU}
					findings = append(findings, f)
				}
			}
			return findings
		},
	},
}

// missing makes findings about nodes. If no node's packets cross, which is also so in the first seconds, as the
// gateways reach each other before the nodes do, the gateway is down.
func (g *gateway) missing(names []string, format string) (findings []Finding) {
	level := levelDegraded
	if len(g.silent)+len(g.unproven) == len(g.Nodes) {
		level = levelDown
	}
	for _, name := range names {
		findings = append(findings, ofNode(level, name, format))
	}
	return findings
}

// Missing returns the nodes that exchange no echoes with the gateway, and of the others those to which no node of the
// peer answers. Packets cross to a node that is deaf for a moment only.
func Missing(s *records.Status, names []string) (silent, unproven []string) {
	for name, n := range Nodes(s, names) {
		switch {
		case !echoes(s, *n), n.Deaf && !proven(s, *n):
			silent = append(silent, name)
		case !proven(s, *n):
			unproven = append(unproven, name)
		}
	}
	return silent, unproven
}

// NodeFault returns the reason why the packets of a node do not cross; "" if they do.
func NodeFault(s *records.Status, name string) string { return fault(s, Node(s, name)) }

func fault(s *records.Status, n records.NodeStatus) string {
	switch {
	case n.Refused != "":
		return "it refuses the peering: " + n.Refused
	case !echoes(s, n):
		return "no echo between gateway and node"
	case !proven(s, n):
		return "no answer from nodes of the peer"
	}
	return ""
}

// NarrowNode is NarrowTunnel for the path from a node to its gateway.
func NarrowNode(n records.NodeStatus, mtu int) int {
	if mtu > 0 && mtu+OverlayOverhead > n.Path.MTU {
		return n.Path.MTU
	}
	return 0
}

// Node returns the status of a node in a report; zero if it has none. The report may be nil.
func Node(s *records.Status, name string) (n records.NodeStatus) {
	if s == nil {
		return n
	}
	if i, found := search(s, name); found {
		n = s.Nodes[i]
	}
	return n
}

// search returns the position of a node in a report.
func search(s *records.Status, name string) (at int, found bool) {
	return slices.BinarySearchFunc(s.Nodes, name, func(n records.NodeStatus, name string) int { return strings.Compare(n.Name, name) })
}

// NodeReady reports whether the packets of a node, by its status in a report, and of its pods cross.
func NodeReady(s *records.Status, n records.NodeStatus) bool { return s != nil && fault(s, n) == "" }

// NodesReady counts the nodes whose packets cross.
func NodesReady(s *records.Status, names []string) int {
	count := 0
	for _, n := range Nodes(s, names) {
		if NodeReady(s, *n) {
			count++
		}
	}
	return count
}

// Nodes returns the statuses of nodes in a report, by name; zero for a node that it does not have. Names in order are
// found without a search. The report may be nil.
func Nodes(s *records.Status, names []string) iter.Seq2[string, *records.NodeStatus] {
	return func(yield func(string, *records.NodeStatus) bool) {
		var none records.NodeStatus
		next := 0
		for _, name := range names {
			n := &none
			switch {
			case s == nil:
			case next < len(s.Nodes) && s.Nodes[next].Name == name:
				n, next = &s.Nodes[next], next+1
			default:
				if i, found := search(s, name); found {
					n, next = &s.Nodes[i], i+1
				}
			}
			if !yield(name, n) {
				return
			}
		}
	}
}

func echoes(s *records.Status, n records.NodeStatus) bool {
	return !n.LastEcho.IsZero() && s.Time.Sub(n.LastEcho) < NodeSilence
}

func proven(s *records.Status, n records.NodeStatus) bool {
	return !n.LastProof.IsZero() && s.Time.Sub(n.LastProof) < ProofSilence
}
