package supervisor

import (
	"net/netip"

	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/underlay"
)

// connect makes the node's network and, unless a real plugin does that, the routes to and from every other member of
// its cluster, in the cluster's style.
func (s *Supervisor) connect(c *cluster, n *node) error {
	member, err := s.underlay.Attach(c.Cluster, n.Name(), n.Address())
	if err != nil {
		return err
	}
	n.member = member
	if c.NetworkPlugin != spec.PluginLab {
		return nil // the rest is the plugin's part
	}
	if err := member.Masquerade(c.Cluster, n.Number); err != nil {
		return err
	}
	if c.PodNetwork == spec.VXLAN {
		if err := member.AddTunnel(n.tunnelEnd(), c.PodMTU()); err != nil {
			return err
		}
	}
	if err := c.control.Route(n.Pods(), n.Address()); err != nil {
		return err
	}
	if err := s.underlay.RoutePods(c.Cluster, n.Pods(), n.Address()); err != nil {
		return err
	}
	if c.HasIPv6() {
		if err := n.routeIPv6(c.control); err != nil {
			return err
		}
	}
	for _, other := range c.list() {
		if other == n {
			continue
		}
		if err := n.reach(other, c.PodNetwork); err != nil {
			return err
		}
		if _, ok := other.running(); !ok {
			continue // it learns the route when it starts
		}
		if err := other.reach(n, c.PodNetwork); err != nil {
			return err
		}
	}
	return nil
}

// routeIPv6 makes a member reach the IPv6 addresses of the node's pods: by plain routes, whatever carries IPv4.
func (n *node) routeIPv6(from underlay.Member) error {
	return from.Route([]netip.Prefix{spec.NodePodCIDR6(n.Number)}, spec.NodeNetwork6(n.Address()).Addr())
}

// reach makes the node reach another node's pods.
func (n *node) reach(other *node, by spec.PodNetwork) error {
	if n.Cluster.HasIPv6() {
		if err := other.routeIPv6(n.member); err != nil {
			return err
		}
	}
	if by == spec.VXLAN {
		return n.member.RouteByTunnel(other.Pods(), other.tunnelEnd())
	}
	return n.member.Route(other.Pods(), other.Address())
}

func (n *node) tunnelEnd() underlay.TunnelEnd {
	return underlay.TunnelEnd{Node: n.Address(), Address: n.TunnelAddress()}
}
