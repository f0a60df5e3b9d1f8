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

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// snapshot is what Status has read of a cluster. Nothing in it stops at a damaged record: what cannot be read is told
// beside all else.
type snapshot struct {
	cluster  *cluster.Cluster
	stands   existing        // of the installation
	fabric   *records.Fabric // nil: none that can be read
	peerings map[string]*peeringSnapshot
	altered  []string // objects of the installation that are not as they should be
	nodes    []string
	// witnesses are what nodes report of gateways, by gateway and node.
	witnesses map[records.GatewayID]map[string]string
	reports   []records.Node // of nodes, those that can be read
}

// peeringSnapshot is what was read of one peering. It is judged with what all of a cluster have in common.
type peeringSnapshot struct {
	record   *records.Peering     // nil: none that can be read
	gateways []health.Observation // by their number less one; one where there is no record
	altered  []string
}

// takeSnapshot reads what all peerings of a cluster have in common, and their records.
func takeSnapshot(ctx context.Context, c *cluster.Cluster) (*snapshot, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	s := &snapshot{cluster: c}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return s.readRecords(inner) })
	group.Go(func() (err error) {
		// Also those whose helper has no pod: their packets do not cross.
		s.nodes, _, err = inventory.HelperNodes(inner, c)
		return err
	})
	group.Go(func() error { return s.readLeases(inner) })
	group.Go(func() (err error) {
		s.stands, err = readInstallation(inner, c)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(s.peerings) > 0 {
		return s, nil
	}
	if _, err := inventory.CheckElsewhere(ctx, c); err != nil { // none is an answer, unless they are elsewhere
		return nil, err
	}
	if s.stands.image == "" {
		return nil, inventory.NotInstalled(ctx, c)
	}
	return s, nil
}

func (s *snapshot) names() []string { return slices.Sorted(maps.Keys(s.peerings)) }

// add notes that there is a peering.
func (s *snapshot) add(name string) {
	if s.peerings[name] == nil {
		s.peerings[name] = &peeringSnapshot{}
	}
}

// choose leaves one peering.
func (s *snapshot) choose(name string) {
	maps.DeleteFunc(s.peerings, func(other string, _ *peeringSnapshot) bool { return other != name })
}

// chooseOrMiss is choose where the cluster may not have the peering (""), which the peer of that name has.
func (s *snapshot) chooseOrMiss(name, peer string) {
	s.choose(name)
	if name == "" {
		s.peerings[peer] = &peeringSnapshot{gateways: []health.Observation{{
			Problem: fmt.Sprintf("the peering exists in cluster %q only: connect again, or remove it there with disconnect --one-side", peer),
		}}}
	}
}

// peeringWith is the name of the peering with another cluster; "" where there is none. Where the record cannot be read,
// its name decides.
func (s *snapshot) peeringWith(peer records.Fabric) string {
	for name, p := range s.peerings {
		if p.record != nil && p.record.Peer.ClusterID == peer.ClusterID || p.record == nil && name == peer.Name {
			return name
		}
	}
	return ""
}

// readRecords reads all ConfigMaps. What each is follows from its name. A peering is one of which there is any: a
// record, an object of its gateway's, or a reservation.
func (s *snapshot) readRecords(ctx context.Context) error {
	all, err := cluster.All[*corev1.ConfigMap](ctx, s.cluster, "")
	if err != nil {
		return err
	}
	s.peerings = make(map[string]*peeringSnapshot)
	there := make(map[string]*corev1.ConfigMap)
	for _, object := range all {
		there[object.Name] = object
		if id, ok := records.IdentityOf(object.Name); ok && id.Peering != "" {
			s.add(id.Peering)
		}
	}
	var registry *ipam.Registry // nil: none that can be read
	if cm := there[records.IPAMName]; cm != nil {
		if registry, err = store.Decode(cm.Data[records.DataKey]); err != nil {
			s.altered = append(s.altered, fmt.Sprintf("ConfigMap %s cannot be read: %v", records.IPAMName, err))
		} else {
			for _, name := range inventory.ReservedPeerings(registry) {
				s.add(name)
			}
		}
	}
	if len(s.peerings) > 0 && there[records.IPAMName] == nil {
		s.altered = append(s.altered, "ConfigMap "+records.IPAMName+" is missing")
	}
	s.fabric = recordIn[records.Fabric](there, records.FabricName, true, &s.altered)
	var reading errgroup.Group // a report of many nodes takes milliseconds
	reading.SetLimit(runtime.GOMAXPROCS(0))
	for name, p := range s.peerings {
		reading.Go(func() error { p.read(name, there); return nil })
	}
	_ = reading.Wait() // what cannot be read is told beside all else
	for _, p := range s.peerings {
		if p.record == nil || registry == nil {
			continue
		}
		for _, r := range addresses.Unreserved(registry, *p.record) {
			p.altered = append(p.altered, fmt.Sprintf("ConfigMap %s does not reserve %s, %s: liqoctl network init --update", records.IPAMName, r.Range, r.Use()))
		}
	}
	return nil
}

// read reads the records of one peering.
func (p *peeringSnapshot) read(name string, there map[string]*corev1.ConfigMap) {
	p.record = recordIn[records.Peering](there, records.PeeringName(name), true, &p.altered)
	ids := records.GatewayIDs(name, 1)
	if p.record != nil {
		ids = p.record.GatewayIDs()
	}
	for _, id := range ids {
		var o health.Observation
		if p.record != nil {
			o.MTU = p.record.MTU
		}
		if gateway := recordIn[records.Gateway](there, id.Name(), false, &p.altered); gateway != nil {
			o.GatewayNode = gateway.Node
		}
		o.Status = recordIn[records.Status](there, id.StatusName(), false, &p.altered)
		if o.Status != nil {
			o.Every = time.Duration(o.Status.Every)
		}
		p.gateways = append(p.gateways, o)
	}
}

// readLeases reads what nodes report of themselves and of gateways. A user who may not look at Leases sees the
// gateways' reports alone.
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

// recordIn reads the record in the ConfigMap of a name; nil with one problem more where that cannot be. One that need
// not have been written yet may be empty.
func recordIn[T records.Document](there map[string]*corev1.ConfigMap, name string, written bool, problems *[]string) *T {
	cm := there[name]
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

// readProblems asks why gateways do not run that have not reported lately, or that a node misses: of several peerings
// at once, as their gateways may all have been on one node.
func (s *snapshot) readProblems(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cluster.ProblemsAtOnce)
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
	// A user without the right to read events gets no reason.
	if problem != nil {
		o.Problem = problem.Error()
	}
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
	secrets, err := readKeys(ctx, s.cluster)
	if err != nil {
		return err
	}
	for _, name := range s.names() {
		p := s.peerings[name]
		if p.record == nil {
			continue // it would tell which objects there should be
		}
		gateways, err := s.stands.alteredGateways(s.cluster.Namespace, *p.record)
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
