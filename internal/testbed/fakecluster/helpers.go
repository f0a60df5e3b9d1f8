package fakecluster

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
)

// Helpers are the fake helpers of a cluster: they report what real ones report when their kernels are in the desired
// state.
type Helpers struct {
	*kube.Cluster
	Nodes []string
	// Capabilities are those of the kernel of every node.
	Capabilities records.Capabilities
	// ForwardDrops are the rules of foreign firewalls on every node.
	ForwardDrops []records.ForwardDrop
	// Surroundings are the addresses that nodes report as used, by node.
	Surroundings map[string]records.Surroundings
	// GatewayMTU and OverlayMTU are the path MTUs in bytes: between gateways, and from every node to its gateway.
	GatewayMTU, OverlayMTU int
	// LinkMTU has the link MTU of nodes where it is not 1500, by node.
	LinkMTU map[string]int

	NotReporting        map[string]bool   // nodes whose helpers do not report and send nothing
	NotReportingGateway records.GatewayID // this gateway does not report
	SilentTunnels       bool              // no packet of the peer's gateways arrives
	IgnoresRecords      bool              // helpers run and reconcile nothing
	RemovalDelay        time.Duration     // how long nodes take to remove a peering, and its guards
	// ReportsChanges has helpers report changes only, and gateways also after health.ReportEvery, as real ones do. Else
	// they report at every tick.
	ReportsChanges bool

	gateways     *Gateways            // nil: no pods are simulated
	lastRecord   map[string]time.Time // when a peering last had a record
	lastReserved map[string]time.Time // when a peering last had reservations
	reported     map[string]report    // by object
}

// report is a report that was written.
type report struct {
	text   string
	status records.Status // of a gateway
}

// NewHelpers returns helpers whose nodes have every capability and an MTU of 1500.
func NewHelpers(c *kube.Cluster, nodes ...string) *Helpers {
	return &Helpers{
		Cluster: c, Nodes: nodes,
		Capabilities: records.Capabilities{Release: "6.12.0", WireGuard: true, Geneve: true, VXLAN: true},
		GatewayMTU:   1500, OverlayMTU: 1500,
		NotReporting: make(map[string]bool), lastRecord: make(map[string]time.Time), lastReserved: make(map[string]time.Time),
		reported: make(map[string]report),
	}
}

// Tick reconciles every installed helper once with the present records.
func (h *Helpers) Tick(ctx context.Context) error {
	if h.IgnoresRecords {
		return nil
	}
	fabric, err := inventory.Fabric(ctx, h.Cluster)
	if err != nil {
		return err
	}
	peerings, err := inventory.Peerings(ctx, h.Cluster)
	if err != nil {
		return err
	}
	_, err = h.Kube.AppsV1().DaemonSets(h.Namespace).Get(ctx, records.NodeName, metav1.GetOptions{})
	if err == nil {
		err = h.nodeHelpers(ctx, fabric, peerings)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, peer := range peerings {
		for _, id := range records.GatewayIDs(peer.Name, records.MaxGateways) {
			if err := h.gateway(ctx, id); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// nodeHelpers report from every node.
func (h *Helpers) nodeHelpers(ctx context.Context, fabric *records.Fabric, peerings []records.Peering) error {
	var applied []string
	for _, peer := range peerings {
		applied = append(applied, peer.Name)
		h.lastRecord[peer.Name] = time.Now()
	}
	for name, last := range h.lastRecord {
		exists := slices.ContainsFunc(peerings, func(peer records.Peering) bool { return peer.Name == name })
		if !exists && time.Since(last) < h.RemovalDelay {
			applied = append(applied, name)
		}
	}
	guarded := h.guarded(ctx, applied)
	for i, name := range h.Nodes {
		if h.NotReporting[name] {
			continue
		}
		n := records.Node{
			Version: records.SchemaVersion, Name: name, MTU: cmp.Or(h.LinkMTU[name], 1500), Kernel: h.Capabilities, Peerings: applied, Guarded: guarded,
			Clean: fabric == nil && len(guarded) == 0, ForwardDrops: h.ForwardDrops,
			Number: i + 1,
		}
		if err := h.lease(ctx, n, fabric != nil); err != nil {
			return err
		}
	}
	return nil
}

// guarded returns the peerings that are not applied and whose ranges are reserved, or were within RemovalDelay.
func (h *Helpers) guarded(ctx context.Context, applied []string) []string {
	registry, err := inventory.Reservations(ctx, h.Cluster)
	if err != nil {
		return nil // damaged reservations guard nothing
	}
	for _, name := range choose.ReservedPeerings(registry) {
		h.lastReserved[name] = time.Now()
	}
	var guarded []string
	for name, last := range h.lastReserved {
		if time.Since(last) <= h.RemovalDelay && !slices.Contains(applied, name) {
			guarded = append(guarded, name)
		}
	}
	slices.Sort(guarded)
	return guarded
}

// lease writes a node's report. It creates a missing Lease only if create is set.
func (h *Helpers) lease(ctx context.Context, n records.Node, create bool) error {
	n.Surroundings = h.Surroundings[n.Name]
	text, err := records.Encode(n)
	if err != nil {
		return err
	}
	if h.ReportsChanges {
		if h.reported[n.Name].text == text {
			return nil
		}
		defer func() { h.reported[n.Name] = report{text: text} }()
	}
	leases := h.Kube.CoordinationV1().Leases(h.Namespace)
	annotations := map[string]string{records.AnnotationNode: text}
	patch := mergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	_, err = leases.Patch(ctx, records.NodeLeaseName(n.Number), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if !create {
		return nil
	}
	_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: records.NodeLeaseName(n.Number), Labels: map[string]string{records.LabelComponent: records.ComponentNode},
		Annotations: annotations,
	}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name}}, metav1.CreateOptions{})
	return err
}

// gateway reports that everything works, if the record names the gateway.
func (h *Helpers) gateway(ctx context.Context, id records.GatewayID) error {
	deployment, err := h.Kube.AppsV1().Deployments(h.Namespace).Get(ctx, id.Name(), metav1.GetOptions{})
	if err == nil {
		err = h.gateways.start(ctx, h.Cluster, id, deployment)
	}
	if err != nil {
		return err
	}
	record, err := inventory.Record[records.Peering](ctx, h.Cluster, records.PeeringName(id.Peering))
	if err != nil || record == nil || id.Number > len(record.Gateways) || id == h.NotReportingGateway {
		return err
	}
	if works, err := h.HasAllTunnels(ctx, id, record); !works {
		return err
	}
	now := time.Now().UTC()
	s := records.Status{
		Version: records.SchemaVersion, Time: now, Pod: "gateway-0", Implementation: records.Kernel, Overlay: records.Geneve,
		TunnelStatus: h.tunnel(now),
	}
	s.Exposed = record.Exposed
	if tunnels := record.Gateways[id.Number-1].Tunnels; len(tunnels) > 1 {
		s.Tunnels = slices.Repeat([]records.TunnelStatus{s.TunnelStatus}, len(tunnels))
	}
	for _, name := range h.Nodes {
		if h.NotReporting[name] {
			continue
		}
		s.Nodes = append(s.Nodes, records.NodeStatus{
			Name: name, LastEcho: now, LastProof: now, ProofRTT: records.Duration(2 * time.Millisecond),
			Path: records.PathSize{Asked: true, MTU: h.OverlayMTU},
		})
	}
	if h.ReportsChanges {
		if last := h.reported[id.StatusName()].status; health.Same(last, s) && now.Sub(last.Time) < health.ReportEvery {
			return nil
		}
		h.reported[id.StatusName()] = report{status: s}
	}
	text, err := records.Encode(s)
	if err != nil {
		return err
	}
	patch := mergePatch(map[string]any{"data": map[string]string{records.DataKey: text}})
	_, err = h.Kube.CoreV1().ConfigMaps(h.Namespace).Patch(ctx, id.StatusName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// tunnel returns what a gateway reports of each tunnel.
func (h *Helpers) tunnel(now time.Time) records.TunnelStatus {
	if h.SilentTunnels {
		return records.TunnelStatus{}
	}
	return records.TunnelStatus{
		Session: records.Session{Since: now, Usable: true}, LastEcho: now, RTT: records.Duration(time.Millisecond), Path: records.PathSize{Asked: true, MTU: h.GatewayMTU},
	}
}

// FirstGateway returns the ID of the first gateway of a peering.
func FirstGateway(peering string) records.GatewayID {
	return records.GatewayID{Peering: peering, Number: 1}
}

func mergePatch(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings
	}
	return b
}
