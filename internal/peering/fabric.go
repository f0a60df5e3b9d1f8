package peering

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/records"
)

// checkClusterID rejects an installation whose fabric is of another cluster, as its objects were copied.
func (s *site) checkClusterID() error {
	f := s.observed.fabric
	if f == nil || f.ClusterID == s.id {
		return nil
	}
	return hint.With(
		fmt.Errorf("cluster %q contains liqonet objects copied from cluster %s (this is %s)", s.cluster.Context, f.ClusterID, s.id),
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
	return s.options.Update && len(s.nodes.notReady()) == 0 && !slices.ContainsFunc(s.nodes.allReady(), missing)
}

// checkForward finds nodes whose firewall drops forwarded packets unless one of its own rules accepts them, as
// iptables' policy DROP of Docker and ufw does: rules of other tables cannot accept them. It is an error if asError is
// set, else a warning. Existing rules of such a firewall for liqonet's packets are not recognised.
func (s *site) checkForward(asError bool) error {
	if s.fabric.AllowForward {
		return nil // the nodes' helpers add the rules
	}
	var nodes []string
	for _, n := range s.readyReports() {
		if len(n.ForwardDrops) > 0 {
			nodes = append(nodes, fmt.Sprintf("%s (%s)", n.Name, plan.Joined(n.ForwardDrops, records.ForwardDrop.String)))
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return s.failOrWarn(asError, "firewalls drop what nodes forward: "+strings.Join(nodes, ", "),
		"let the node helpers add rules with --allow-forward; or have these chains accept packets from and to links lqn-*, "+
			"then connect with --skip-validation")
}
