package peering

import (
	"context"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// checkCopied refuses an installation that was made for another cluster.
func (s *site) checkCopied() error {
	f := s.found.fabric
	if f == nil || f.ClusterID == s.id {
		return nil
	}
	return hint.With(
		fmt.Errorf("the installation in cluster %q was made for cluster %s, and this is cluster %s: the objects were copied", s.cluster.Context, f.ClusterID, s.id),
		"liqoctl network reset --force --context "+kube.ShellWord(s.cluster.Context))
}

// writeFabric replaces the fabric by the one that is wanted. complete fills in what is not discovered.
func (s *site) writeFabric(ctx context.Context, complete func(records.Fabric) (records.Fabric, error)) error {
	wanted, err := complete(s.wantedFabric())
	if err != nil {
		return err
	}
	change, err := inventory.Write(ctx, s.cluster, records.FabricName, s.found.fabric, wanted)
	s.note(change)
	if err != nil {
		return err
	}
	s.fabric, s.found.fabric = wanted, &wanted
	return nil
}

// wantedFabric is a cluster's fabric as it should be before its nodes have reported: what only they can tell is
// taken over from the fabric that is there.
func (s *site) wantedFabric() records.Fabric {
	f := records.Fabric{
		Version: records.SchemaVersion, ClusterID: s.id, Name: s.name,
		PodCIDRs: s.own.Pods, ServiceCIDRs: s.own.Services, NodeNetworks: s.own.Nodes,
		ExternalCIDR: s.own.External, InternalCIDR: s.own.Internal,
		Overlay: records.Overlay{Port: records.DefaultOverlayPort}, CNI: s.discovery.CNI,
	}
	if have := s.found.fabric; have != nil {
		f.Overlay, f.MTU, f.AllowForward = have.Overlay, have.MTU, have.AllowForward
	}
	if s.options.OverlayPort != 0 {
		f.Overlay.Port = s.options.OverlayPort
	}
	if s.options.AllowForward != nil {
		f.AllowForward = *s.options.AllowForward
	}
	return f
}

// raises reports whether the MTU may rise: on the user's word, while every node is Ready and has reported. A node that
// is away for a moment must not make it rise.
func (s *site) raises() bool {
	silent := func(node string) bool { return !s.reports(node) }
	return s.update && len(s.nodes.notReady()) == 0 && !slices.ContainsFunc(s.nodes.all(), silent)
}

// withReports fills in what the nodes tell: overlay and MTU. Without raise, the MTU only ever falls.
func withReports(f records.Fabric, nodes []records.Node, wish records.OverlayKind, raise bool) (records.Fabric, error) {
	kind, err := chooseOverlay(nodes, wish, f.Overlay.Kind)
	if err != nil {
		return f, err
	}
	f.Overlay.Kind = kind
	if mtu := smallestMTU(nodes); f.MTU == 0 || mtu > 0 && (mtu < f.MTU || raise) {
		f.MTU = mtu
	}
	return f, nil
}
