package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
)

// view is what was read of a cluster, as peerings. A damaged record does not stop it: problems are listed beside the
// rest.
type view struct {
	*observe.Snapshot

	cluster   *kube.Cluster
	peerings  map[string]*peeringView
	altered   []string // objects of the installation that differ from the desired ones
	witnesses map[records.GatewayID]map[string]string
}

// peeringView is what was read of one peering. Its state also depends on the objects that all peerings share.
type peeringView struct {
	record   *records.Peering     // nil: no readable record
	gateways []health.Observation // by gateway number minus one; one element if there is no record
	altered  []string
}

// Parts are the parts of a snapshot that status needs. Without permission to read Leases, only the gateways' reports
// count; pods are read if a gateway is missed.
func Parts() []observe.Part {
	return []observe.Part{observe.Records, observe.Nodes, observe.Leases, observe.Objects, observe.Keys}
}

// viewOf returns the peerings of a cluster.
func viewOf(ctx context.Context, c *kube.Cluster, s *observe.Snapshot) (*view, error) {
	for _, p := range append([]observe.Part{observe.Server}, Parts()...) {
		switch err := s.Errors[p]; {
		case err == nil:
		case (p == observe.Leases || p == observe.Keys) && notAllowed(err):
		default:
			return nil, err
		}
	}
	v := &view{Snapshot: s, cluster: c, peerings: make(map[string]*peeringView), witnesses: s.Witnesses()}
	for _, name := range s.Names() {
		v.peerings[name] = v.peering(name)
	}
	v.readShared()
	if len(v.peerings) > 0 {
		return v, v.compare()
	}
	// No peerings is a valid answer, unless they are in another namespace.
	if _, err := inventory.CheckElsewhere(ctx, c); err != nil {
		return nil, err
	}
	if installationOf(s).image == "" {
		return nil, inventory.NotInstalled(ctx, c)
	}
	return v, nil
}

// notAllowed reports whether the user may not read something.
func notAllowed(err error) bool {
	_, refused := errors.AsType[*kube.PermissionError](err)
	return refused || apierrors.IsForbidden(err)
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
		}}}
	}
}

// readShared lists what is wrong with the records of the installation.
func (v *view) readShared() {
	if problem := v.Problem(records.IPAMName); problem != "" && (v.Damaged[records.IPAMName] != nil || len(v.peerings) > 0) {
		v.altered = append(v.altered, problem)
	}
	if problem := v.Problem(records.FabricName); problem != "" {
		v.altered = append(v.altered, problem)
	}
}

// peering returns what the records of one peering say.
func (v *view) peering(name string) *peeringView {
	p := &peeringView{record: v.Peerings[name]}
	lacks := func(name string) {
		if problem := v.Problem(name); problem != "" {
			p.altered = append(p.altered, problem)
		}
	}
	lacks(records.PeeringName(name))
	ids := records.GatewayIDs(name, 1)
	if p.record != nil {
		ids = p.record.GatewayIDs()
	}
	for _, id := range ids {
		o := health.Observation{Status: v.Statuses[id]}
		if p.record != nil {
			o.MTU = p.record.MTU
		}
		lacks(id.Name())
		if place := v.Places[id]; place != nil {
			o.GatewayNode = place.Node
		}
		lacks(id.StatusName())
		if o.Status != nil {
			o.Every = time.Duration(o.Status.Every)
		}
		p.gateways = append(p.gateways, o)
	}
	if p.record == nil || v.Registry == nil {
		return p
	}
	for _, r := range choose.Unreserved(v.Registry, *p.record) {
		p.altered = append(p.altered, fmt.Sprintf("ConfigMap %s does not reserve %s, %s: liqoctl network init --update", records.IPAMName, r.Range, r.Use()))
	}
	return p
}

// missed reports whether the report of a gateway is missing or late, or a node does not reach it.
func (v *view) missed(id records.GatewayID, o health.Observation) bool {
	missed := slices.ContainsFunc(slices.Collect(maps.Values(v.witnesses[id])), func(fault string) bool { return fault != "" })
	return o.Problem == "" && (o.Status == nil || missed || health.Late(time.Since(o.Status.Time), o.Every))
}

// readProblems reads why gateways do not run that are missed. A user without permission to read pods gets no reason.
func (v *view) readProblems(ctx context.Context) error {
	for _, name := range v.names() {
		gateways := v.peerings[name].gateways
		for i := range gateways {
			id := records.GatewayID{Peering: name, Number: i + 1}
			if !v.missed(id, gateways[i]) {
				continue
			}
			if errors.Is(v.Errors[observe.Pods], observe.ErrNotRead) {
				read.Again(ctx, v.cluster, v.Snapshot, observe.Pods)
			}
			if err := v.Errors[observe.Pods]; err != nil {
				if notAllowed(err) {
					return nil
				}
				return err
			}
			if problem := v.PodProblem(inventory.GatewaySelector(id)); problem != nil {
				gateways[i].Problem = problem.Error()
			}
		}
	}
	return nil
}

// compare adds the objects that differ from the desired ones.
func (v *view) compare() error {
	installed := installationOf(v.Snapshot)
	base, err := installed.alteredBase(v.Namespace)
	if err != nil {
		return err
	}
	v.altered = append(v.altered, base...)
	for _, p := range v.peerings {
		if p.record == nil {
			continue // without it the desired objects are unknown
		}
		gateways, err := installed.alteredGateways(v.Namespace, *p.record)
		if err != nil {
			return err
		}
		p.altered = append(p.altered, gateways...)
		for _, id := range p.record.GatewayIDs() {
			if problem := v.alteredKeys(id); problem != "" {
				p.altered = append(p.altered, problem)
			}
		}
	}
	return nil
}

// alteredKeys returns the problem of a gateway's keys; "" if there is none, or the user may not read them.
func (v *view) alteredKeys(id records.GatewayID) string {
	name := id.KeysName()
	switch key, ok := v.Keys[name]; {
	case v.Errors[observe.Keys] != nil:
		return ""
	case !ok:
		return "Secret " + name + " is missing"
	case key.Err != nil:
		return fmt.Sprintf("Secret %s cannot be read: %v", name, key.Err)
	}
	return ""
}
