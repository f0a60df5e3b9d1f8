package peering

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/templates"
)

// PeeringStatus is the health of a peering, as one cluster sees it. Durations are -1 where nothing is known.
type PeeringStatus struct { //nolint:revive // Status is the function that returns it
	Cluster string       `json:"cluster"` // whose side this is: its name at its peers
	Peer    string       `json:"peer"`
	Role    records.Role `json:"role,omitempty"`
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"` // why it is not healthy
	// Endpoint is where the peer's gateway is heard, else where the client looks for it.
	Endpoint       string                 `json:"endpoint,omitempty"`
	HandshakeAge   time.Duration          `json:"handshakeAgeNanoseconds"` // when the report was made
	RTT            time.Duration          `json:"rttNanoseconds"`          // between the gateways
	Loss           float64                `json:"loss"`                    // of echoes between them, 0 to 1
	RxBytes        int64                  `json:"rxBytes"`
	TxBytes        int64                  `json:"txBytes"`
	NodesReady     int                    `json:"nodesReady"` // whose packets cross
	NodesTotal     int                    `json:"nodesTotal"` // that should take part
	Implementation records.Implementation `json:"implementation,omitempty"`
	Overlay        records.OverlayKind    `json:"overlay,omitempty"`
	ReportAge      time.Duration          `json:"reportAgeNanoseconds"`
	Pod            string                 `json:"pod,omitempty"`         // of the gateway
	MTU            int                    `json:"mtu,omitempty"`         // bytes, of packets between pods
	PathMTU        int                    `json:"pathMTU,omitempty"`     // bytes, of packets between the gateways, measured; 0: not known
	Mappings       []MappedRange          `json:"mappings,omitempty"`    // of the peer's ranges
	OwnMappings    []MappedRange          `json:"ownMappings,omitempty"` // of this cluster's ranges at the peer; none: not known
	Exposed        []ExposedHost          `json:"exposed,omitempty"`     // hosts outside this cluster that the peer may reach
	Nodes          []NodeState            `json:"nodes,omitempty"`
	Drift          records.Drift          `json:"drift,omitzero"` // of the gateway's kernel
	// Altered are objects that are missing, damaged or not as liqonet made them, each with how.
	Altered []string `json:"altered,omitempty"`
}

// NodeState is one node's part in a peering.
type NodeState struct {
	Name  string        `json:"name"`
	Ready bool          `json:"ready"`                   // its packets cross
	RTT   time.Duration `json:"rttNanoseconds,omitzero"` // to the gateway and back
	// ProofRTT is the round trip to a node of the peer.
	ProofRTT time.Duration `json:"proofRTTNanoseconds,omitzero"`
	PathMTU  int           `json:"pathMTU,omitempty"` // bytes, of packets to the gateway, measured; 0: not known
	Drift    records.Drift `json:"drift,omitzero"`    // of the node's kernel
}

// unknownDuration stands for a duration that nobody has measured.
const unknownDuration = time.Duration(-1)

// Status returns the health of a cluster's peerings, sorted by name: all of them, or the one that is asked for. With a
// remote cluster it returns their peering as the local cluster sees it, then as the remote one does. One of which records
// are damaged or missing is listed beside the others. A report that is late by the clocks, which may differ, gets the time
// to be followed by another.
func Status(ctx context.Context, o StatusOptions) ([]PeeringStatus, error) {
	seen := make(sightings)
	for begun := time.Now(); ; {
		all, err := look(ctx, o, seen)
		if err != nil || !slices.ContainsFunc(all, func(p PeeringStatus) bool { return seen.mayFollow(p, time.Since(begun)) }) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// look is Status without that time; seen is what was seen of the reports before.
func look(ctx context.Context, o StatusOptions, seen sightings) ([]PeeringStatus, error) {
	clusters := o.clusters()
	sides := make([]*snapshot, len(clusters))
	group, inner := errgroup.WithContext(ctx)
	for i, c := range clusters {
		group.Go(func() (err error) {
			sides[i], err = takeSnapshot(inner, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := o.choose(sides); err != nil {
		return nil, err
	}
	group, inner = errgroup.WithContext(ctx)
	for _, s := range sides {
		group.Go(func() error {
			if err := s.compare(inner); err != nil {
				return err
			}
			return s.readProblems(inner)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := []PeeringStatus{} // none is an answer
	for _, s := range sides {
		all = append(all, s.describe(seen)...)
	}
	return all, nil
}

// choose leaves the peerings that are asked for: all, that of a name, or that of the two clusters.
func (o StatusOptions) choose(sides []*snapshot) error {
	if len(sides) == 2 {
		return o.chooseCommon(sides[0], sides[1])
	}
	if s := sides[0]; o.Peer != "" {
		if s.peerings[o.Peer] == nil {
			return &inventory.NoPeeringError{Context: s.cluster.Context, Name: o.Peer, Known: s.names()}
		}
		s.choose(o.Peer)
	}
	return nil
}

// chooseCommon leaves the peering of two clusters. A cluster that does not have it, while the other does, has it listed
// as down.
func (o StatusOptions) chooseCommon(local, remote *snapshot) error {
	for _, s := range []*snapshot{local, remote} {
		if s.fabric == nil {
			return fmt.Errorf("find the peering in cluster %q: %s", s.cluster.Context, strings.Join(s.altered, "; "))
		}
	}
	if local.fabric.ClusterID == remote.fabric.ClusterID {
		return steps.SameCluster(local.cluster, remote.cluster)
	}
	here, there := local.peeringWith(*remote.fabric), remote.peeringWith(*local.fabric)
	if here == "" && there == "" || o.Peer != "" && o.Peer != cmp.Or(here, remote.fabric.Name) {
		return &inventory.NoPeeringError{Context: local.cluster.Context, Name: cmp.Or(o.Peer, remote.fabric.Name), Known: local.names()}
	}
	local.chooseOrMiss(here, remote.fabric.Name)
	remote.chooseOrMiss(there, local.fabric.Name)
	return nil
}

// compare looks for objects that are not as they should be.
func (s *snapshot) compare(ctx context.Context) error {
	if len(s.peerings) == 0 {
		return nil
	}
	base, err := s.stands.alteredBase(s.cluster.Namespace)
	if err != nil {
		return err
	}
	s.altered = append(s.altered, base...)
	for _, name := range s.names() {
		p := s.peerings[name]
		if p.record == nil {
			continue // it would tell which objects there should be
		}
		gateway, err := s.stands.alteredGateway(s.cluster.Namespace, *p.record)
		if err != nil {
			return err
		}
		keys, err := alteredKeys(ctx, s.cluster, name)
		if err != nil {
			return err
		}
		if p.Altered = append(p.Altered, gateway...); keys != "" {
			p.Altered = append(p.Altered, keys)
		}
	}
	return nil
}

// participants are the names of the nodes that should take part in every peering: Ready, with a helper. Sorted.
func participants(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	ready, err := inventory.ReadyNodes(ctx, c)
	if err != nil {
		return nil, err
	}
	pods, err := cluster.All[*corev1.Pod](ctx, c, templates.NodePods())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods {
		if ready[pod.Spec.NodeName] {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// describe returns the health of the peerings.
func (s *snapshot) describe(seen sightings) []PeeringStatus {
	now := time.Now()
	all := make([]PeeringStatus, 0, len(s.peerings))
	for _, name := range s.names() {
		p := s.peerings[name]
		o := p.Observation
		o.Nodes, o.Witnesses, o.Altered = s.nodes, s.witnesses[name], slices.Concat(p.Altered, s.altered)
		if p.Status != nil {
			o.Age = seen.age(name, p, now)
		}
		record := records.Peering{Name: name}
		if p.record != nil {
			record = *p.record
		}
		status := describeStatus(record, o)
		status.Cluster = s.cluster.Context
		if s.fabric != nil {
			status.Cluster = s.fabric.Name
		}
		all = append(all, status)
	}
	return all
}

// describeStatus joins what a peering should be with what is observed of it.
func describeStatus(p records.Peering, o health.Observation) PeeringStatus {
	v := PeeringStatus{
		Peer: p.Name, Role: p.Role, NodesTotal: len(o.Nodes), MTU: p.MTU, Mappings: mappedRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR),
		HandshakeAge: unknownDuration, RTT: unknownDuration, ReportAge: unknownDuration, Altered: o.Altered,
	}
	for _, x := range p.Exposed {
		h := exposedHost(p, x)
		h.Served = o.Status != nil && slices.Contains(o.Status.Exposed, x)
		v.Exposed = append(v.Exposed, h)
	}
	v.State, v.Reason = health.Judge(o)
	if len(p.Tunnel.Endpoints) > 0 {
		v.Endpoint = p.Tunnel.Endpoints[0]
	}
	for _, name := range o.Nodes {
		v.Nodes = append(v.Nodes, nodeState(o.Status, name))
	}
	s := o.Status
	if s == nil {
		return v
	}
	v.ReportAge = max(o.Age, 0)
	v.RxBytes, v.TxBytes, v.Loss = s.RxBytes, s.TxBytes, s.Loss
	v.Implementation, v.Overlay, v.Pod = s.Implementation, s.Overlay, s.Pod
	v.NodesReady = health.NodesReady(s, o.Nodes)
	v.Drift, v.PathMTU = s.Drift, s.Path.MTU
	if s.Endpoint.IsValid() {
		v.Endpoint = s.Endpoint.String()
	}
	if !s.LastHandshake.IsZero() {
		v.HandshakeAge = s.Time.Sub(s.LastHandshake)
	}
	if !s.LastEcho.IsZero() {
		v.RTT = time.Duration(s.RTT)
	}
	return v
}

func nodeState(s *records.Status, name string) NodeState {
	n, _ := health.Node(s, name)
	return NodeState{
		Name: name, Ready: health.NodeReady(s, name), RTT: time.Duration(n.RTT), ProofRTT: time.Duration(n.ProofRTT),
		PathMTU: n.Path.MTU, Drift: n.Drift,
	}
}
