package status

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

// view is what was read of a cluster, as peerings. A damaged record does not stop it: problems are listed beside the
// rest.
type view struct {
	*observe.Snapshot

	peerings  map[string]*peeringView
	witnesses map[records.GatewayID]map[string]string
	nodes     []string // the Ready ones. Those without a helper's pod count too: their packets do not cross
}

// peeringView is what was read of one peering. Its state also depends on the objects that all peerings share.
type peeringView struct {
	record   *records.Peering     // nil: no readable record
	gateways []health.Observation // by gateway number minus one; one element if there is no record
	records  []health.Finding     // what is wrong with its records
}

// Parts are the parts of a snapshot that status needs. Without permission to read Leases, only the gateways' reports
// count. Complete reads more of them where that is needed.
func Parts() []observe.Part {
	return []observe.Part{observe.Records, observe.Nodes, observe.Leases, observe.Objects, observe.Keys}
}

// viewOf returns the peerings of a cluster.
func viewOf(s *observe.Snapshot) (*view, error) {
	for _, p := range append([]observe.Part{observe.Server}, Parts()...) {
		switch err := s.Errors[p]; {
		case err == nil:
		case (p == observe.Leases || p == observe.Keys) && kube.NotAllowed(err):
		default:
			return nil, err
		}
	}
	v := &view{Snapshot: s, peerings: make(map[string]*peeringView), witnesses: s.Witnesses()}
	v.nodes, _ = s.NodeNames()
	for _, name := range s.Names() {
		v.peerings[name] = v.peering(name)
	}
	if len(v.peerings) > 0 {
		return v, nil
	}
	// No peerings is a valid answer, unless they are in another namespace.
	if err := s.Errors[observe.Elsewhere]; err != nil && !errors.Is(err, observe.ErrNotRead) {
		return nil, err
	}
	if installationOf(s).image == "" {
		return nil, inventory.NotInstalledError(s.Context, s.Namespace)
	}
	return v, nil
}

func (v *view) names() []string { return slices.Sorted(maps.Keys(v.peerings)) }

// choose removes all peerings but one.
func (v *view) choose(name string) {
	maps.DeleteFunc(v.peerings, func(other string, _ *peeringView) bool { return other != name })
}

// chooseOrMiss is choose for a cluster that may not have the peering (name is "") with that peer.
func (v *view) chooseOrMiss(name, peer string) {
	v.choose(name)
	if name == "" {
		v.peerings[peer] = &peeringView{gateways: []health.Observation{{
			Problem: fmt.Sprintf("the peering exists in cluster %q only: connect again, or remove it there with disconnect --one-side", peer),
			Nodes:   v.nodes,
		}}}
	}
}

// peering returns what the records of one peering say.
func (v *view) peering(name string) *peeringView {
	p := &peeringView{record: v.Peerings[name]}
	lacks := func(name string) { p.records = append(p.records, v.lacking(name)...) }
	lacks(records.PeeringName(name))
	ids := records.GatewayIDs(name, 1)
	if p.record != nil {
		ids = p.record.GatewayIDs()
	}
	for _, id := range ids {
		o := health.Observation{Status: v.Statuses[id], Nodes: v.nodes, Witnesses: v.witnesses[id]}
		if p.record != nil {
			o.MTU, o.Transport = p.record.MTU, *p.record.Settings.Complete().Transport
		}
		lacks(id.Name())
		if place := v.Places[id]; place != nil {
			o.GatewayNode = place.Node
		}
		lacks(id.StatusName())
		if o.Status != nil {
			o.Every, o.Age = time.Duration(o.Status.Every), age(v.Snapshot, id)
		}
		// Without permission to read pods, no reason is known.
		if missed(o) && v.Errors[observe.Pods] == nil {
			if problem := v.PodProblem(id.Name(), inventory.GatewaySelector(id)); problem != nil {
				o.Problem = problem.Error()
			}
		}
		p.gateways = append(p.gateways, o)
	}
	return p
}

// missed reports whether the report of a gateway is missing or late by the clocks, or a node does not reach it.
func missed(o health.Observation) bool {
	return o.Status == nil || health.Late(o.Age, o.Every) ||
		slices.ContainsFunc(slices.Collect(maps.Values(o.Witnesses)), func(fault string) bool { return fault != "" })
}
