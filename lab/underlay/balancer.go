package underlay

import (
	"net/netip"

	"liqonet.io/liqonet/lab/spec"
)

// Balance is a port of a load balancer: connections to it are spread over the NodePort of nodes, of which there is one
// at least.
type Balance struct {
	Address  netip.Addr
	Protocol string // "tcp" or "udp"
	Port     uint16
	Nodes    []netip.Addr
	NodePort uint16
}

// SetBalancers makes the router the load balancer of a cluster's Services, for these ports and no others.
func (u *Underlay) SetBalancers(c spec.Cluster, rules []Balance) error {
	values := map[string]any{"Cluster": c.Name, "Bridge": bridgeName(c.Name), "Rules": rules}
	return feed(u.Router, "balancer", values, "nft", "-f", "-")
}
