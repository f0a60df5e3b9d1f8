package diagnose

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// fact is an input of checks, by its name in messages: a part of a snapshot, or one of these.
type fact = observe.Part

const (
	peerings     fact = "peerings"
	reservations fact = "reservations"
	packets      fact = "packets along all paths"
)

var errNoProbe = errors.New("sent with --probe alone")

// facts are the facts of one cluster. A fact that could not be read is zero and has its error in Errors.
type facts struct {
	*observe.Snapshot

	name   string // at its peers; the kube context if unknown
	remote string // kube context of the other cluster; "": not selected

	peerings []status.Peering
	findings []choose.Finding
	used     choose.Uses
	paths    []pathtest.Check
	helped   map[string]bool // names of the Ready nodes with a Ready helper
}

// factsOf returns the facts in what was read of a cluster.
func factsOf(s *observe.Snapshot) *facts {
	own := *s
	own.Errors = maps.Clone(s.Errors) // which get those of facts
	f := &facts{Snapshot: &own, name: s.Context, helped: make(map[string]bool)}
	ready, _ := f.NodeNames()
	for _, p := range f.PodsOf(templates.NodePods()) {
		if _, known := slices.BinarySearch(ready, p.Spec.NodeName); known && kube.PodReady(p) {
			f.helped[p.Spec.NodeName] = true
		}
	}
	f.Errors[packets] = errNoProbe
	if f.Errors[observe.Server] != nil {
		f.Errors[peerings], f.Errors[reservations] = observe.ErrUnreached, observe.ErrUnreached
		return f
	}
	f.peerings, f.Errors[peerings] = status.Of("", s)
	f.findings, f.Errors[reservations] = f.Reservations()
	if needed := []kube.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}}; slices.ContainsFunc(needed, func(o kube.Object) bool { return !f.Objects.Readable(o) }) {
		f.Errors[observe.Objects] = kube.ErrUnreadable
	}
	if f.Fabric != nil {
		f.name = f.Fabric.Name
		f.used = f.uses()
	}
	return f
}

// uses returns the addresses in use around the cluster, which site.inUse of package peering avoids.
func (f *facts) uses() choose.Uses {
	reported, _ := choose.ReportedUses(f.Reports)
	return choose.Outside(f.Servers, inventory.ExternalUses(f.Platform.Nodes), reported, slices.Concat(f.Fabric.PodCIDRs, f.Fabric.ServiceCIDRs, f.Fabric.NodeNetworks))
}

// helpers returns the DaemonSet of node helpers; nil if there is none.
func (f *facts) helpers() *appsv1.DaemonSet {
	set, _ := f.Objects.Object(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: records.NodeName}}).(*appsv1.DaemonSet)
	return set
}

// service returns the Service of that name; nil if there is none.
func (f *facts) service(name string) *corev1.Service {
	service, _ := f.Objects.Object(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}).(*corev1.Service)
	return service
}

// side is a peering as one of its clusters observes it.
type side struct {
	*facts

	status    status.Peering
	record    *records.Peering  // nil: none that is readable
	reports   []*records.Status // by gateway number minus one; nil: missing, late, or of the future
	peerFacts *facts            // facts of the other cluster; nil: not selected
	peer      *side             // the other cluster's side; nil: unknown
}

func (f *facts) side(p status.Peering) *side {
	s := &side{facts: f, status: p, record: f.Peerings[p.Peer]}
	for _, id := range s.ids() {
		report := f.Statuses[id]
		late := func(o health.Finding) bool { return o.Subject.Gateway == id.Number }
		if slices.ContainsFunc(health.With(p.Findings, health.GatewayReport, health.APIClock), late) {
			report = nil
		}
		s.reports = append(s.reports, report)
	}
	return s
}

// sideWith returns the peering with another cluster; nil if there is none. If that cluster cannot be read, the name
// decides.
func (f *facts) sideWith(peer *facts, name string) *side {
	found := cmp.Or(name, peer.name)
	if peer.Fabric != nil {
		found = f.PeeringWith(*peer.Fabric)
	}
	i := slices.IndexFunc(f.peerings, func(p status.Peering) bool { return p.Peer == found })
	if i < 0 || name != "" && name != found {
		return nil
	}
	return f.side(f.peerings[i])
}

// ids returns the gateways of the side.
func (s *side) ids() []records.GatewayID {
	return records.GatewayIDs(s.status.Peer, len(s.status.Gateways))
}
