package status

import (
	"errors"
	"slices"
	"sync"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// describe returns the health of the peerings.
func (v *view) describe() ([]Peering, error) {
	installed := installationOf(v.Snapshot)
	base, err := installed.alteredBase(v.Namespace)
	if err != nil {
		return nil, err
	}
	shared := append(v.shared(), base...)
	names := v.names()
	all, errs := make([]Peering, len(names)), make([]error, len(names))
	var group sync.WaitGroup // a peering of many nodes takes milliseconds
	for i, name := range names {
		group.Go(func() { all[i], errs[i] = v.describePeering(name, installed, shared) })
	}
	group.Wait()
	return all, errors.Join(errs...)
}

// describePeering returns the health of one peering. shared is what is wrong with the installation.
func (v *view) describePeering(name string, installed existing, shared []health.Finding) (Peering, error) {
	p := v.peerings[name]
	altered, err := v.altered(p, installed)
	if err != nil {
		return Peering{}, err
	}
	record := records.Peering{Name: name}
	if p.record != nil {
		record = *p.record
	}
	status := describeStatus(record, p.gateways, slices.Concat(altered, shared))
	status.Cluster = v.Context
	if v.Fabric != nil {
		status.Cluster = v.Fabric.Name
		if status.Overlay.Kind != "" {
			status.Overlay.Port = v.Fabric.Overlay.Port
		}
	}
	if v.Fabric == nil || !v.Fabric.AllowForward { // otherwise helpers add rules
		status.Warnings = forwardWarnings(v.Reports)
	}
	return status, nil
}

// describeStatus joins the desired peering with the findings about its objects and the observations of its gateways.
func describeStatus(p records.Peering, gateways []health.Observation, objects []health.Finding) Peering {
	v := Peering{
		Peer: p.Name, Role: p.Role, Addresses: AddressRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR()), OwnAddresses: AddressRanges(p.Local.PodCIDRs, p.Local.ExternalCIDR()),
	}
	each := make([][]health.Finding, len(gateways))
	for i, o := range gateways {
		each[i] = health.Gateway(o)
	}
	v.Findings = slices.Concat(objects, health.Together(each))
	v.State, v.Reason = health.StateOf(v.Findings), health.Reason(v.Findings, len(gateways))
	served := func(x records.Exposed) bool {
		reported := slices.DeleteFunc(slices.Clone(gateways), func(o health.Observation) bool { return o.Status == nil })
		return len(reported) > 0 && !slices.ContainsFunc(reported, func(o health.Observation) bool { return !slices.Contains(o.Status.Exposed, x) })
	}
	for _, x := range p.Exposed {
		h := DescribeHost(p, x)
		h.Served = served(x)
		v.Exposed = append(v.Exposed, h)
	}
	for i, o := range gateways {
		var g records.LocalGateway
		if i < len(p.Gateways) {
			g = p.Gateways[i]
		}
		v.Gateways = append(v.Gateways, describeGateway(i+1, g, o, each[i]))
		if o.Status != nil && v.Overlay.Kind == "" {
			v.Overlay.Kind = o.Status.Overlay
		}
	}
	v.MTU = mtuOf(p, v)
	for _, n := range v.NodeStates() {
		v.Nodes.Total++
		if n.Ready {
			v.Nodes.Ready++
			continue
		}
		v.Nodes.Unverified = append(v.Nodes.Unverified, Unverified{n.Name, health.NodeFault(gateways[0].Status, n.Name)})
	}
	return v
}

// mtuOf returns the sizes in the record of a peering and in what its gateways report.
func mtuOf(p records.Peering, v Peering) MTU {
	m := MTU{Value: p.MTU}
	switch {
	case p.MTU == 0:
	case *p.Settings.Complete().MTU == 0:
		m.Source = "measured"
	default:
		m.Source = "set"
	}
	smallest := func(to *int, size int) {
		if size > 0 && (*to == 0 || size < *to) {
			*to = size
		}
	}
	for _, g := range v.Gateways {
		for _, t := range g.Tunnels {
			smallest(&m.Gateways, t.PathMTU)
		}
		for _, n := range g.Nodes {
			smallest(&m.Nodes, n.PathMTU)
		}
	}
	return m
}
