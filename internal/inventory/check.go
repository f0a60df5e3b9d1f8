package inventory

import (
	"context"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
)

// DesiredRanges returns the ranges of a cluster after discovery, by its fabric and what the user specifies.
func DesiredRanges(d discover.Discovery, o discover.Overrides, fabric *records.Fabric) choose.Ranges {
	found := choose.Ranges{Pods: d.PodCIDRs.Prefixes, Services: d.ServiceCIDRs.Prefixes, Nodes: d.NodeNetworks.Prefixes}
	return choose.Desired(found, choose.Ranges{Pods: o.PodCIDRs, Services: o.ServiceCIDRs, Nodes: o.NodeNetworks}, fabric)
}

// ExternalUses returns the external addresses of nodes.
func ExternalUses(nodes []discover.Node) (all choose.Uses) {
	for _, n := range nodes {
		for _, a := range n.External {
			all = append(all, choose.Use{Addresses: cidr.Single(a), By: "external address of node " + n.Name})
		}
	}
	return all
}

// AddReservations is UpdateReservations for changes that reserve free ranges. It reads peerings after the registry. If
// a peering that was read is removed in the meantime, its ranges are released after that, and the update is retried
// because of the conflict.
func AddReservations(ctx context.Context, c *kube.Cluster, f *records.Fabric, change func(*ipam.Registry) error) error {
	return UpdateReservations(ctx, c, func(r *ipam.Registry) error {
		peerings, err := Peerings(ctx, c)
		if err != nil {
			return err
		}
		choose.Restore(r, f, peerings)
		return change(r)
	})
}
