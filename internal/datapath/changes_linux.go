package datapath

import (
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Changes returns the changes in kernels that follow from a change of the records. It omits nodes and gateways that
// have not reported.
func Changes(before, after records.Set) []Change {
	var all []Change
	note := func(c Change, have, want netops.State) {
		if plan := netops.Diff(have, want); !plan.Empty() {
			c.Steps = strings.Split(strings.TrimSuffix(plan.String(), "\n"), "\n")
			all = append(all, c)
		}
	}
	for _, n := range before.Nodes {
		note(Change{Node: n.Name}, nodeOf(before, n).State(), nodeOf(after, n).State())
	}
	for _, p := range before.Peerings {
		for i := range p.Gateways {
			id := records.GatewayID{Peering: p.Name, Number: i + 1}
			have, _ := gatewayOf(before, id)
			if want, ok := gatewayOf(after, id); ok {
				note(Change{Gateway: id.String()}, have, want)
			}
		}
	}
	return all
}

func nodeOf(r records.Set, n records.Node) Node {
	node := Node{Name: n.Name, Fabric: r.Fabric, Peerings: r.Peerings, Gateways: r.Gateways, Pods: PodsOf(n)}
	if r.Fabric != nil {
		node.Internal = records.NodeAddress(r.Fabric.InternalCIDR(), n.Number)
	}
	return node
}

// gatewayOf returns the state of a gateway; false if it does not exist, because its kernel state is removed with its
// pod.
func gatewayOf(r records.Set, id records.GatewayID) (netops.State, bool) {
	i := slices.IndexFunc(r.Peerings, func(p records.Peering) bool { return p.Name == id.Peering && id.Number <= len(p.Gateways) })
	if i < 0 || r.Fabric == nil || !r.Gateways[id].PodIP.IsValid() {
		return netops.State{}, false
	}
	return Gateway{Fabric: *r.Fabric, Peering: r.Peerings[i], Number: id.Number, Nodes: r.Nodes, Pod: r.Gateways[id].PodIP}.State(), true
}
