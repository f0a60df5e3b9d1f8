package underlay

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/lab/spec"
)

// routerTable is the router's routing table, and the mark of its packets, for the pods of the first cluster; other
// clusters' follow in the order of the spec.
const routerTable = 101

// routesPods reports whether the router knows the way to the cluster's pods.
func routesPods(c spec.Cluster) bool { return c.Masquerade == spec.MasqueradeNone }

// adopt makes the router serve pods of a cluster whose nodes do not hide them.
func (u *Underlay) adopt(c spec.Cluster) error {
	table := routerTable + len(u.tables)
	u.tables[c.Name] = table
	values := map[string]any{"Cluster": c.Name, "Bridge": bridgeName(c.Name), "Mark": table, "Pods": c.PodCIDR}
	if err := feed(u.Router, "router", values, "nft", "-f", "-"); err != nil {
		return err
	}
	return ip(u.Router, fmt.Sprintf("rule add fwmark %d table %d priority %d", table, table, table))
}

// RoutePods adds routes to a node's pods on the router, if the cluster's network routes pod addresses.
func (u *Underlay) RoutePods(c spec.Cluster, pods []netip.Prefix, node netip.Addr) error {
	table, ok := u.tables[c.Name]
	if !ok {
		return nil
	}
	commands := make([]string, len(pods))
	for i, p := range pods {
		commands[i] = fmt.Sprintf("route replace %s via %s table %d", p, node, table)
	}
	return ip(u.Router, commands...)
}
