package inventory

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
)

// CheckReservations compares a cluster's reservations with its peerings and its present ranges. The findings are sorted
// by range.
func CheckReservations(ctx context.Context, c *kube.Cluster) ([]choose.Finding, error) {
	have, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	return have.Findings(), nil
}

// readState reads reservations before peerings: connect writes them in that order, so that the reservations of every
// peering that is read are included.
func readState(ctx context.Context, c *kube.Cluster) (choose.State, error) {
	registry, err := Reservations(ctx, c)
	if err != nil {
		return choose.State{}, err
	}
	a := choose.State{Registry: registry}
	var discovery discover.Discovery
	group, inner := errgroup.WithContext(ctx)
	ReadInto(inner, group, c, &a.Fabric, Fabric)
	ReadInto(inner, group, c, &a.Peerings, Peerings)
	group.Go(func() error {
		objects, err := c.List(inner, records.LabelPeering)
		for _, object := range objects {
			a.Begun = append(a.Begun, object.GetLabels()[records.LabelPeering])
		}
		return err
	})
	group.Go(func() (err error) {
		discovery, err = discover.Read(inner, c, discover.Overrides{})
		if _, a.Assumed = errors.AsType[*discover.MissingError](err); a.Assumed {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return choose.State{}, err
	}
	a.Own = DesiredRanges(discovery, discover.Overrides{}, a.Fabric)
	return a, nil
}

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
