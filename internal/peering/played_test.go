package peering

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// played are the helpers of a cluster, played: they report what real ones would once their kernels are as the
// documents ask.
type played struct {
	*cluster.Cluster
	nodes []string
	// kernel has the capabilities of every node's.
	kernel records.Capabilities
	// drops are the firewalls of others on every node.
	drops []records.ForwardDrop
	// surroundings are what nodes report as used, by node.
	surroundings map[string]records.Surroundings
	// between and overlay are what the hops carry, in bytes: between gateways, and from every node to its gateway.
	between, overlay int
	// links are the MTU of the links of nodes whose MTU is not 1500, by node.
	links map[string]int

	mute     map[string]bool   // nodes whose helpers do not report and send nothing
	silent   records.GatewayID // this gateway does not report
	deaf     bool              // helpers run and do not follow any document
	slowness time.Duration     // how long nodes take to give up a peering, and what they guard of one
	pods     *pods
	leaving  map[string]time.Time
	// told is what helpers have reported, by object: as real ones, they do again when it changes, and gateways after
	// health.ReportEvery. nil: they report whenever they act.
	told     map[string]told
	guarding map[string]time.Time // when a peering was last reserved
}

// told is a report that was written.
type told struct {
	text   string
	status records.Status // of a gateway
}

func newPlayed(c *cluster.Cluster, nodes ...string) played {
	return played{
		Cluster: c, nodes: nodes,
		kernel:  records.Capabilities{Release: "6.12.0", WireGuard: true, Geneve: true, VXLAN: true},
		between: 1500, overlay: 1500,
		mute: make(map[string]bool), leaving: make(map[string]time.Time), guarding: make(map[string]time.Time),
	}
}

// act has every helper that is installed act once, for the documents that there are.
func (p *played) act(ctx context.Context, fabric *records.Fabric, peerings []records.Peering) error {
	if p.deaf {
		return nil
	}
	_, err := p.Kube.AppsV1().DaemonSets(p.Namespace).Get(ctx, records.NodeName, metav1.GetOptions{})
	if err == nil {
		err = p.nodeHelpers(ctx, fabric, peerings)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, peer := range peerings {
		for _, id := range records.GatewayIDs(peer.Name, records.MaxGateways) {
			if err := p.gateway(ctx, id); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// nodeHelpers report from every node.
func (p *played) nodeHelpers(ctx context.Context, fabric *records.Fabric, peerings []records.Peering) error {
	var applied []string
	for _, peer := range peerings {
		applied = append(applied, peer.Name)
		p.leaving[peer.Name] = time.Now()
	}
	for name, last := range p.leaving {
		stands := slices.ContainsFunc(peerings, func(peer records.Peering) bool { return peer.Name == name })
		if !stands && time.Since(last) < p.slowness {
			applied = append(applied, name)
		}
	}
	guarded, err := p.guarded(ctx, applied)
	if err != nil {
		return err
	}
	for i, name := range p.nodes {
		if p.mute[name] {
			continue
		}
		n := records.Node{
			Version: records.SchemaVersion, Name: name, MTU: cmp.Or(p.links[name], 1500), Kernel: p.kernel, Peerings: applied, Guarded: guarded,
			Clean: fabric == nil && len(guarded) == 0, ForwardDrops: p.drops,
			Internal: netip.AddrFrom4([4]byte{10, 80, byte((i + 1) >> 8), byte(i + 1)}),
		}
		if err := p.lease(ctx, n, fabric != nil); err != nil {
			return err
		}
	}
	return nil
}

// guarded are the peerings whose ranges are reserved, or were until a moment ago, and which are not applied.
func (p *played) guarded(ctx context.Context, applied []string) ([]string, error) {
	registry, err := inventory.Reservations(ctx, p.Cluster)
	if err != nil {
		return nil, nil //nolint:nilerr // damaged reservations guard nothing
	}
	for _, name := range inventory.ReservedPeerings(registry) {
		p.guarding[name] = time.Now()
	}
	var guarded []string
	for name, last := range p.guarding {
		if time.Since(last) <= p.slowness && !slices.Contains(applied, name) {
			guarded = append(guarded, name)
		}
	}
	slices.Sort(guarded)
	return guarded, nil
}

// lease writes a node's report; where no Lease is, it makes one only if may.
func (p *played) lease(ctx context.Context, n records.Node, may bool) error {
	n.Surroundings = p.surroundings[n.Name]
	text, err := records.Encode(n)
	if err != nil {
		return err
	}
	if p.told != nil {
		if p.told[n.Name].text == text {
			return nil
		}
		defer func() { p.told[n.Name] = told{text: text} }()
	}
	leases := p.Kube.CoordinationV1().Leases(p.Namespace)
	annotations := map[string]string{records.AnnotationNode: text}
	patch := mergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	_, err = leases.Patch(ctx, records.AddressLeaseName(n.Internal), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if !may {
		return nil
	}
	_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: records.AddressLeaseName(n.Internal), Labels: map[string]string{records.LabelComponent: records.ComponentNode},
		Annotations: annotations,
	}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name}}, metav1.CreateOptions{})
	return err
}

// gateway reports that everything works, where the record names it.
func (p *played) gateway(ctx context.Context, id records.GatewayID) error {
	deployment, err := p.Kube.AppsV1().Deployments(p.Namespace).Get(ctx, id.Name(), metav1.GetOptions{})
	if err == nil {
		err = p.pods.start(ctx, p.Cluster, id, deployment)
	}
	if err != nil {
		return err
	}
	record, err := inventory.Record[records.Peering](ctx, p.Cluster, records.PeeringName(id.Peering))
	if err != nil || record == nil || id.Number > len(record.Gateways) || id == p.silent {
		return err
	}
	if works, err := p.pods.reached(ctx, p.Cluster, id, record); !works {
		return err
	}
	now := time.Now().UTC()
	s := records.Status{
		Version: records.SchemaVersion, Time: now, Pod: "gateway-0", Implementation: records.Kernel, Overlay: records.Geneve,
		TunnelStatus: records.TunnelStatus{
			LastHandshake: now, LastEcho: now, RTT: records.Duration(time.Millisecond), Path: records.PathSize{Asked: true, MTU: p.between},
		},
	}
	s.Exposed = record.Exposed
	if tunnels := record.Gateways[id.Number-1].Tunnels; len(tunnels) > 1 {
		s.Tunnels = slices.Repeat([]records.TunnelStatus{s.TunnelStatus}, len(tunnels))
	}
	for _, name := range p.nodes {
		if p.mute[name] {
			continue
		}
		s.Nodes = append(s.Nodes, records.NodeStatus{
			Name: name, LastEcho: now, LastProof: now, ProofRTT: records.Duration(2 * time.Millisecond),
			Path: records.PathSize{Asked: true, MTU: p.overlay},
		})
	}
	if p.told != nil {
		if last := p.told[id.StatusName()].status; health.Same(last, s) && now.Sub(last.Time) < health.ReportEvery {
			return nil
		}
		p.told[id.StatusName()] = told{status: s}
	}
	text, err := records.Encode(s)
	if err != nil {
		return err
	}
	patch := mergePatch(map[string]any{"data": map[string]string{records.DataKey: text}})
	_, err = p.Kube.CoreV1().ConfigMaps(p.Namespace).Patch(ctx, id.StatusName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// first is the first gateway of a peering.
func first(peering string) records.GatewayID { return records.GatewayID{Peering: peering, Number: 1} }

func mergePatch(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings
	}
	return b
}
