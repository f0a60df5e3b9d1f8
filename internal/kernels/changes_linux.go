package kernels

import (
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Changes returns what changes in kernels when the records change. Nodes and gateways that have not reported are left out.
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
		have, _ := gatewayOf(before, p.Name)
		if want, ok := gatewayOf(after, p.Name); ok {
			note(Change{Gateway: p.Name}, have, want)
		}
	}
	return all
}

func nodeOf(r records.Set, n records.Node) Node {
	return Node{Fabric: r.Fabric, Peerings: r.Peerings, Gateways: r.Gateways, Pods: PodsOf(n), Internal: n.Internal}
}

// gatewayOf is the state of a peering's gateway; false where it is not there, as its kernel's state goes with it.
func gatewayOf(r records.Set, peering string) (netops.State, bool) {
	i := slices.IndexFunc(r.Peerings, func(p records.Peering) bool { return p.Name == peering })
	if i < 0 || r.Fabric == nil || !r.Gateways[peering].PodIP.IsValid() {
		return netops.State{}, false
	}
	return Gateway{Fabric: *r.Fabric, Peering: r.Peerings[i], Number: 1, Nodes: r.Nodes, Pod: r.Gateways[peering].PodIP}.State(), true
}
