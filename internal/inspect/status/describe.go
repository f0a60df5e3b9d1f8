package status

import (
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// describe returns the health of the peerings.
func (v *view) describe(seen sightings) []Peering {
	now, nodes := time.Now(), v.ReadyNodes() // those without a helper's pod count too: their packets do not cross
	all := make([]Peering, 0, len(v.peerings))
	for _, name := range v.names() {
		p := v.peerings[name]
		gateways := slices.Clone(p.gateways)
		for i := range gateways {
			o, id := &gateways[i], records.GatewayID{Peering: name, Number: i + 1}
			o.Nodes, o.Witnesses = nodes, v.witnesses[id]
			if o.Status != nil {
				o.Age = seen.age(id, *o, now)
			}
		}
		record := records.Peering{Name: name}
		if p.record != nil {
			record = *p.record
		}
		status := describeStatus(record, gateways, slices.Concat(p.altered, v.altered))
		status.Cluster = v.Context
		if v.Fabric != nil {
			status.Cluster = v.Fabric.Name
		}
		if v.Fabric == nil || !v.Fabric.AllowForward { // otherwise helpers add rules
			status.Warnings = forwardWarnings(v.Reports)
		}
		all = append(all, status)
	}
	return all
}

// describeStatus joins the desired peering with the observations of its gateways.
func describeStatus(p records.Peering, gateways []health.Observation, altered []string) Peering {
	lead := leading(gateways)
	v := describeLeading(p, gateways[lead])
	v.Altered = altered
	v.Findings = slices.Concat(health.Altered(altered), health.Gateways(gateways))
	v.State, v.Reason = health.StateOf(v.Findings), health.Reason(v.Findings, len(gateways))
	for i, o := range gateways {
		var g records.LocalGateway
		if i < len(p.Gateways) {
			g = p.Gateways[i]
		}
		one := describeGateway(i+1, g, o)
		v.Gateways = append(v.Gateways, one)
		// The zero time of an unknown key is before all others.
		if i == 0 || one.KeyCreated.Before(v.KeyCreated) {
			v.KeyCreated = one.KeyCreated
		}
		for j, n := range one.Nodes {
			if n.Ready && !v.Nodes[j].Ready {
				v.Nodes[j] = n
				v.NodesReady++
			}
		}
		if i == lead || o.Status == nil {
			continue
		}
		v.RxBytes, v.TxBytes, v.Loss = v.RxBytes+o.Status.RxBytes, v.TxBytes+o.Status.TxBytes, max(v.Loss, o.Status.Loss)
		v.Drift.Times += o.Status.Drift.Times
	}
	return v
}

// describeLeading describes a peering by one of its gateways.
func describeLeading(p records.Peering, o health.Observation) Peering {
	v := Peering{
		Peer: p.Name, Role: p.Role, NodesTotal: len(o.Nodes), MTU: p.MTU, Mappings: MappedRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR),
		HandshakeAge: unknownDuration, RTT: unknownDuration, ReportAge: unknownDuration,
	}
	for _, x := range p.Exposed {
		h := DescribeHost(p, x)
		h.Served = o.Status != nil && slices.Contains(o.Status.Exposed, x)
		v.Exposed = append(v.Exposed, h)
	}
	if endpoints := p.Endpoints(); len(endpoints) > 0 {
		v.Endpoint = endpoints[0]
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
