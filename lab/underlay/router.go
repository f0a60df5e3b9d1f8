package underlay

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

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
	values := map[string]any{"Cluster": c.Name, "Bridge": bridgeName(c), "Mark": table, "Pods": c.PodCIDR}
	if err := feed(u.Router, "router", values, "nft", "-f", "-"); err != nil {
		return err
	}
	kernel, err := handle(u.Router)
	if err != nil {
		return err
	}
	defer kernel.Close()
	rule := netlink.NewRule()
	rule.Mark, rule.Table, rule.Priority = uint32(table), table, table
	if err := kernel.RuleAdd(rule); err != nil {
		return fmt.Errorf("add rule for the pods of cluster %s: %w", c.Name, err)
	}
	return nil
}

// RoutePods adds routes to a node's pods on the router, if the cluster's network routes pod addresses.
func (u *Underlay) RoutePods(c spec.Cluster, pods []netip.Prefix, node netip.Addr) error {
	table, ok := u.tables[c.Name]
	if !ok {
		return nil
	}
	kernel, err := handle(u.Router)
	if err != nil {
		return err
	}
	defer kernel.Close()
	for _, p := range pods {
		route := &netlink.Route{Dst: ipNet(p), Gw: net.IP(node.AsSlice()), Table: table}
		if err := kernel.RouteReplace(route); err != nil {
			return fmt.Errorf("add the router's route to %s via %s: %w", p, node, err)
		}
	}
	return nil
}
