package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/ipam/store"
)

// snapshot is what Read has read of a cluster. A damaged record does not stop it: problems are listed beside the rest.
type snapshot struct {
	cluster   *kube.Cluster
	installed existing        // of the installation
	fabric    *records.Fabric // nil: no readable record
	peerings  map[string]*peeringSnapshot
	altered   []string // objects of the installation that differ from the desired ones
	nodes     []string
	// witnesses are the reports of nodes on gateways, by gateway and node.
	witnesses map[records.GatewayID]map[string]string
	reports   []records.Node // reports of nodes, the readable ones
}

// peeringSnapshot is what was read of one peering. Its state also depends on the objects that all peerings share.
type peeringSnapshot struct {
	record   *records.Peering     // nil: no readable record
	gateways []health.Observation // by gateway number minus one; one element if there is no record
	altered  []string
}

// takeSnapshot reads the objects that all peerings of a cluster share, and their records.
func takeSnapshot(ctx context.Context, c *kube.Cluster) (*snapshot, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	s := &snapshot{cluster: c}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return s.readRecords(inner) })
	group.Go(func() (err error) {
		// Nodes without a helper pod count too: their packets do not cross.
		s.nodes, _, err = inventory.HelperNodes(inner, c)
		return err
	})
	group.Go(func() error { return s.readLeases(inner) })
	group.Go(func() (err error) {
		s.installed, err = readInstallation(inner, c)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(s.peerings) > 0 {
		return s, nil
	}
	// No peerings is a valid answer, unless they are in another namespace.
	if _, err := inventory.CheckElsewhere(ctx, c); err != nil {
		return nil, err
	}
	if s.installed.image == "" {
		return nil, inventory.NotInstalled(ctx, c)
	}
	return s, nil
}

func (s *snapshot) names() []string { return slices.Sorted(maps.Keys(s.peerings)) }

// add adds a peering, if it is not known yet.
func (s *snapshot) add(name string) {
	if s.peerings[name] == nil {
		s.peerings[name] = &peeringSnapshot{}
	}
}

// choose removes all peerings but one.
func (s *snapshot) choose(name string) {
	maps.DeleteFunc(s.peerings, func(other string, _ *peeringSnapshot) bool { return other != name })
}

// chooseOrMiss is choose for a cluster that may not have the peering (name is "") with that peer.
func (s *snapshot) chooseOrMiss(name, peer string) {
	s.choose(name)
	if name == "" {
		s.peerings[peer] = &peeringSnapshot{gateways: []health.Observation{{
			Problem: fmt.Sprintf("the peering exists in cluster %q only: connect again, or remove it there with disconnect --one-side", peer),
		}}}
	}
}

// peeringWith returns the name of the peering with another cluster; "" if there is none. If the record cannot be read,
// the name decides.
func (s *snapshot) peeringWith(peer records.Fabric) string {
	for name, p := range s.peerings {
		if p.record != nil && p.record.Peer.ClusterID == peer.ClusterID || p.record == nil && name == peer.Name {
			return name
		}
	}
	return ""
}

// readRecords reads all ConfigMaps, whose names determine their kinds. A peering exists if it has a record, an object
// of a gateway, or a reservation.
func (s *snapshot) readRecords(ctx context.Context) error {
	all, err := kube.All[*corev1.ConfigMap](ctx, s.cluster, "")
	if err != nil {
		return err
	}
	s.peerings = make(map[string]*peeringSnapshot)
	objects := make(map[string]*corev1.ConfigMap)
	for _, object := range all {
		objects[object.Name] = object
		if id, ok := records.IdentityOf(object.Name); ok && id.Peering != "" {
			s.add(id.Peering)
		}
	}
	var registry *ipam.Registry // nil: no readable registry
	if cm := objects[records.IPAMName]; cm != nil {
		if registry, err = store.Decode(cm.Data[records.DataKey]); err != nil {
			s.altered = append(s.altered, fmt.Sprintf("ConfigMap %s cannot be read: %v", records.IPAMName, err))
		} else {
			for _, name := range choose.ReservedPeerings(registry) {
				s.add(name)
			}
		}
	}
	if len(s.peerings) > 0 && objects[records.IPAMName] == nil {
		s.altered = append(s.altered, "ConfigMap "+records.IPAMName+" is missing")
	}
	s.fabric = recordIn[records.Fabric](objects, records.FabricName, true, &s.altered)
	var reading errgroup.Group // decoding a report of many nodes takes milliseconds
	reading.SetLimit(runtime.GOMAXPROCS(0))
	for name, p := range s.peerings {
		reading.Go(func() error { p.read(name, objects); return nil })
	}
	_ = reading.Wait() // problems are in altered
	for _, p := range s.peerings {
		if p.record == nil || registry == nil {
			continue
		}
		for _, r := range choose.Unreserved(registry, *p.record) {
			p.altered = append(p.altered, fmt.Sprintf("ConfigMap %s does not reserve %s, %s: liqoctl network init --update", records.IPAMName, r.Range, r.Use()))
		}
	}
	return nil
}

// read reads the records of one peering.
func (p *peeringSnapshot) read(name string, objects map[string]*corev1.ConfigMap) {
	p.record = recordIn[records.Peering](objects, records.PeeringName(name), true, &p.altered)
	ids := records.GatewayIDs(name, 1)
	if p.record != nil {
		ids = p.record.GatewayIDs()
	}
	for _, id := range ids {
		var o health.Observation
		if p.record != nil {
			o.MTU = p.record.MTU
		}
		if gateway := recordIn[records.Gateway](objects, id.Name(), false, &p.altered); gateway != nil {
			o.GatewayNode = gateway.Node
		}
		o.Status = recordIn[records.Status](objects, id.StatusName(), false, &p.altered)
		if o.Status != nil {
			o.Every = time.Duration(o.Status.Every)
		}
		p.gateways = append(p.gateways, o)
	}
}

// readLeases reads what nodes report of themselves and of gateways. Without permission to read Leases, only the
// gateways' reports count.
func (s *snapshot) readLeases(ctx context.Context) error {
	leases, err := inventory.Leases(ctx, s.cluster)
	if apierrors.IsForbidden(err) {
		return nil
	}
	s.reports, _ = inventory.Reports(leases)
	s.witnesses = make(map[records.GatewayID]map[string]string)
	for _, n := range s.reports {
		for gateway, fault := range n.Witness {
			if s.witnesses[gateway] == nil {
				s.witnesses[gateway] = make(map[string]string)
			}
			s.witnesses[gateway][n.Name] = fault
		}
	}
	return err
}

// recordIn reads the record in the ConfigMap of a name. If it cannot, it returns nil and appends a problem. If written
// is false, the record may be empty because it was not written yet.
func recordIn[T records.Document](objects map[string]*corev1.ConfigMap, name string, written bool, problems *[]string) *T {
	cm := objects[name]
	if cm == nil {
		*problems = append(*problems, "ConfigMap "+name+" is missing")
		return nil
	}
	id, _ := records.IdentityOf(name)
	if _, ok := cm.Data[records.DataKey]; !ok && !written && id.CheckLabels(cm.Labels) == nil {
		return nil
	}
	r, err := records.Read[T](cm.Name, cm.Labels, cm.Data)
	if err == nil {
		return &r
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	*problems = append(*problems, fmt.Sprintf("ConfigMap %s cannot be read: %v", name, err))
	return nil
}

// readProblems reads why gateways do not run whose reports are late or that a node does not reach. It reads for several
// peerings at once, as all their gateways may have been on one node.
func (s *snapshot) readProblems(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(kube.ProblemsAtOnce)
	for _, name := range s.names() {
		gateways := s.peerings[name].gateways
		for i := range gateways {
			group.Go(func() error { return s.readProblem(ctx, records.GatewayID{Peering: name, Number: i + 1}, &gateways[i]) })
		}
	}
	return group.Wait()
}

// readProblem is readProblems for one gateway.
func (s *snapshot) readProblem(ctx context.Context, id records.GatewayID, o *health.Observation) error {
	missed := slices.ContainsFunc(slices.Collect(maps.Values(s.witnesses[id])), func(fault string) bool { return fault != "" })
	if o.Problem != "" || o.Status != nil && !missed && !health.Late(time.Since(o.Status.Time), o.Every) {
		return nil
	}
	problem, err := s.cluster.PodProblem(ctx, inventory.GatewaySelector(id))
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	// A user without permission to read events gets no reason.
	if problem != nil {
		o.Problem = problem.Error()
	}
	return nil
}

// compare adds the objects that differ from the desired ones.
func (s *snapshot) compare(ctx context.Context) error {
	if len(s.peerings) == 0 {
		return nil
	}
	base, err := s.installed.alteredBase(s.cluster.Namespace)
	if err != nil {
		return err
	}
	s.altered = append(s.altered, base...)
	secrets, err := readKeys(ctx, s.cluster)
	if err != nil {
		return err
	}
	for _, name := range s.names() {
		p := s.peerings[name]
		if p.record == nil {
			continue // without it the desired objects are unknown
		}
		gateways, err := s.installed.alteredGateways(s.cluster.Namespace, *p.record)
		if err != nil {
			return err
		}
		p.altered = append(p.altered, gateways...)
		for _, id := range p.record.GatewayIDs() {
			if secrets == nil {
				break
			}
			if keys := alteredKeys(secrets, id); keys != "" {
				p.altered = append(p.altered, keys)
			}
		}
	}
	return nil
}
