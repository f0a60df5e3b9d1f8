package peering

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// checkClusterID rejects an installation whose fabric is of another cluster, as its objects were copied.
func (s *site) checkClusterID() error {
	f := s.observed.fabric
	if f == nil || f.ClusterID == s.id {
		return nil
	}
	return hint.With(
		fmt.Errorf("the installation in cluster %q was made for cluster %s, and this is cluster %s: the objects were copied", s.cluster.Context, f.ClusterID, s.id),
		"liqoctl network reset --force --context "+kube.ShellWord(s.cluster.Context))
}

// writeFabric writes the desired fabric. complete adds the values that discovery does not determine.
func (s *site) writeFabric(ctx context.Context, complete func(records.Fabric) (records.Fabric, error)) error {
	desired, err := complete(s.desiredFabric())
	if err != nil {
		return err
	}
	change, err := inventory.Write(ctx, s.cluster, records.FabricName, s.observed.fabric, desired)
	s.recordChanges(change)
	if err != nil {
		return err
	}
	s.fabric, s.observed.fabric = desired, &desired
	return nil
}

// desiredFabric returns a cluster's desired fabric before its nodes have reported: values from their reports are those
// of the current fabric.
func (s *site) desiredFabric() records.Fabric {
	f := records.Fabric{
		Version: records.SchemaVersion, ClusterID: s.id, Name: s.name,
		PodCIDRs: s.own.Pods, ServiceCIDRs: s.own.Services, NodeNetworks: s.own.Nodes,
		ExternalCIDRs: []netip.Prefix{s.own.External}, InternalCIDRs: []netip.Prefix{s.own.Internal},
		Overlay: records.Overlay{Port: records.DefaultOverlayPort}, CNI: s.discovery.CNI,
	}
	if have := s.observed.fabric; have != nil {
		f.Overlay, f.MTU, f.AllowForward = have.Overlay, have.MTU, have.AllowForward
	}
	f.Overlay.Port = cmp.Or(s.options.OverlayPort, f.Overlay.Port)
	f.AllowForward = ptr.Deref(s.options.AllowForward, f.AllowForward)
	return f
}

// mayRaiseMTU reports whether the MTU may rise: only with --update, while every node is Ready and has reported. A node
// that is temporarily down must not cause a rise.
func (s *site) mayRaiseMTU() bool {
	missing := func(node string) bool { return !s.hasReport(node) }
	return s.update && len(s.nodes.notReady()) == 0 && !slices.ContainsFunc(s.nodes.allReady(), missing)
}

// withReports adds the values from nodes' reports: overlay and MTU. Without raise, the MTU can only fall.
func withReports(f records.Fabric, nodes []records.Node, requested records.OverlayKind, raise bool) (records.Fabric, error) {
	kind, err := chooseOverlay(nodes, requested, f.Overlay.Kind)
	if err != nil {
		return f, err
	}
	f.Overlay.Kind = kind
	if mtu := smallestMTU(nodes); f.MTU == 0 || mtu > 0 && (mtu < f.MTU || raise) {
		f.MTU = mtu
	}
	return f, nil
}
