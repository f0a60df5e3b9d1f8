package diagnose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// fact is an input of checks, by its name in messages.
type fact string

const (
	server       fact = "API server"
	rights       fact = "rights"
	installation fact = "installation"
	peerings     fact = "peerings"
	configMaps   fact = "records"
	leases       fact = "reports of nodes"
	nodes        fact = "nodes"
	pods         fact = "pods"
	objects      fact = "Deployments and Services"
	plugin       fact = "network plugin"
	surroundings fact = "API servers and nodes"
	reservations fact = "reservations"
	policies     fact = "NetworkPolicies"
	secrets      fact = "Secrets"
	packets      fact = "packets along all paths"
)

var (
	errUnreached = errors.New("the API server does not answer")
	errNoProbe   = errors.New("sent with --probe alone")
)

// facts are the facts of one cluster. A fact that could not be read is zero and has its error in unread.
type facts struct {
	cluster *kube.Cluster
	name    string // at its peers; the kube context if unknown
	remote  string // kube context of the other cluster; "": not selected

	mu     sync.Mutex
	unread map[fact]error

	missing         []kube.Permission // rights of level view
	otherNamespaces []string          // namespaces of other installations
	set             *appsv1.DaemonSet // of node helpers
	fabric          *records.Fabric
	configMaps      map[string]*corev1.ConfigMap
	peerings        []status.Peering
	leases          []*coordinationv1.Lease
	decoded         *decodedReports // decoded leases; nil: not decoded yet
	nodes           []*corev1.Node
	pods            []*corev1.Pod
	problem         map[string]*kube.PodError // why pods do not start, by label selector
	deployments     []*appsv1.Deployment
	services        []*corev1.Service
	discovery       discover.Discovery
	used            choose.Uses
	findings        []choose.Finding
	policies        []networkingv1.NetworkPolicy
	keys            map[records.GatewayID]*inventory.Keys
	paths           []pathtest.Check
}

// gather reads all facts that the user may read. Only the end of the context is an error.
func gather(ctx context.Context, c *kube.Cluster) (*facts, error) {
	f := &facts{cluster: c, name: c.Context, unread: make(map[fact]error), problem: make(map[string]*kube.PodError)}
	f.setUnread(packets, errNoProbe)
	if err := c.Reach(ctx); err != nil {
		for _, what := range []fact{
			rights, installation, peerings, configMaps, leases, nodes, pods, objects, plugin, surroundings, reservations, policies, secrets,
		} {
			f.setUnread(what, errUnreached)
		}
		f.setUnread(server, err)
		return f, ctx.Err()
	}
	var group errgroup.Group
	for what, read := range map[fact]func(context.Context) error{
		rights: f.readRights, installation: f.readInstallation, peerings: f.readPeerings, configMaps: f.readConfigMaps,
		leases: into(&f.leases, c, inventory.Leases), nodes: f.readNodes, pods: f.readPods, objects: f.readObjects,
		plugin: f.readPlugin, reservations: f.readReservations, policies: f.readPolicies,
	} {
		group.Go(func() error {
			f.setUnread(what, read(ctx))
			return nil
		})
	}
	_ = group.Wait() // errors are in unread
	f.setUnread(secrets, f.readKeys(ctx))
	f.setUnread(surroundings, f.readUses(ctx))
	return f, ctx.Err()
}

func into[T any](to *T, c *kube.Cluster, from func(context.Context, *kube.Cluster) (T, error)) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*to, err = from(ctx, c)
		return err
	}
}

// setUnread sets the error of a fact; nil clears an earlier one.
func (f *facts) setUnread(what fact, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread[what] = err
}

// because returns a short reason for which a fact was not read.
func because(err error) string {
	if apierrors.IsForbidden(err) {
		return "you are not allowed to read them"
	}
	return err.Error()
}

func (f *facts) readRights(ctx context.Context) error {
	err := inventory.CheckPermissions(ctx, f.cluster, templates.View)
	if refused, ok := errors.AsType[*kube.PermissionError](err); ok {
		// Level view works without discovery, so those permissions are not missing.
		needed, e := inventory.NeededPermissions(f.cluster.Namespace, templates.View)
		f.missing = slices.DeleteFunc(refused.Missing, func(p kube.Permission) bool {
			return !slices.Contains(needed, p) || slices.Contains(kube.DiscoveryPermissions(), p) && p.Resource != "nodes"
		})
		return e
	}
	return err
}

func (f *facts) readInstallation(ctx context.Context) (err error) {
	if f.otherNamespaces, err = inventory.CheckElsewhere(ctx, f.cluster); err != nil {
		return err
	}
	sets, err := kube.All[*appsv1.DaemonSet](ctx, f.cluster, "")
	if i := slices.IndexFunc(sets, func(s *appsv1.DaemonSet) bool { return s.Name == records.NodeName }); i >= 0 {
		f.set = sets[i]
	}
	return err
}

func (f *facts) readPeerings(ctx context.Context) (err error) {
	f.peerings, err = status.Read(ctx, status.Options{Cluster: f.cluster})
	return err
}

// readConfigMaps reads the records. Damaged records count as missing here: package status lists them.
func (f *facts) readConfigMaps(ctx context.Context) error {
	all, err := kube.All[*corev1.ConfigMap](ctx, f.cluster, "")
	f.configMaps = make(map[string]*corev1.ConfigMap, len(all))
	for _, object := range all {
		f.configMaps[object.Name] = object
	}
	if f.fabric = recordOf[records.Fabric](f, records.FabricName); f.fabric != nil {
		f.name = f.fabric.Name
	}
	return err
}

// recordOf returns the record in the ConfigMap of a name; nil if it is missing or unreadable.
func recordOf[T records.Document](f *facts, name string) *T {
	object := f.configMaps[name]
	if object == nil {
		return nil
	}
	record, err := records.Read[T](object.Name, object.Labels, object.Data)
	if err != nil {
		return nil
	}
	return &record
}

func (f *facts) readNodes(ctx context.Context) error {
	all, err := kube.All[*corev1.Node](ctx, f.cluster, "")
	f.nodes = slices.DeleteFunc(all, func(n *corev1.Node) bool { return !discover.RunsHelpers(n) })
	return err
}

func (f *facts) readPods(ctx context.Context) (err error) {
	if f.pods, err = kube.All[*corev1.Pod](ctx, f.cluster, ""); err != nil {
		return err
	}
	selectors := []string{templates.NodePods()}
	for _, d := range f.gatewayIDs(ctx) {
		selectors = append(selectors, inventory.GatewaySelector(d))
	}
	problems := make([]*kube.PodError, len(selectors))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(kube.ProblemsAtOnce)
	for i, s := range selectors {
		group.Go(func() (err error) {
			problems[i], err = f.cluster.PodProblem(ctx, s)
			return err
		})
	}
	err = group.Wait()
	for i, s := range selectors {
		f.problem[s] = problems[i]
	}
	return err
}

// gatewayIDs returns the gateways that have a Deployment.
func (f *facts) gatewayIDs(ctx context.Context) (ids []records.GatewayID) {
	all, err := kube.All[*appsv1.Deployment](ctx, f.cluster, inventory.Selector(records.ComponentGateway))
	if err != nil {
		return nil // the checks of Deployments report it
	}
	for _, d := range all {
		if id, ok := records.IdentityOf(d.Name); ok {
			ids = append(ids, records.GatewayID{Peering: id.Peering, Number: id.Gateway})
		}
	}
	return ids
}

func (f *facts) readObjects(ctx context.Context) (err error) {
	if f.deployments, err = kube.All[*appsv1.Deployment](ctx, f.cluster, ""); err != nil {
		return err
	}
	f.services, err = kube.All[*corev1.Service](ctx, f.cluster, "")
	return err
}

func (f *facts) readPlugin(ctx context.Context) (err error) {
	f.discovery, err = discover.Read(ctx, f.cluster, discover.Overrides{})
	if _, ok := errors.AsType[*discover.MissingError](err); ok {
		return nil // flags can replace the missing ranges; only the warnings are needed here
	}
	return err
}

// readUses reads the addresses in use around the cluster, which site.inUse of package peering avoids.
func (f *facts) readUses(ctx context.Context) error {
	reports, _ := inventory.Reports(f.leases) // damaged ones are skipped, as by gateways
	reported, _ := choose.ReportedUses(reports)
	servers, err := discover.APIServers(ctx, f.cluster)
	if f.fabric != nil {
		f.used = choose.Outside(servers, inventory.ExternalUses(f.discovery.Nodes), reported, slices.Concat(f.fabric.PodCIDRs, f.fabric.ServiceCIDRs, f.fabric.NodeNetworks))
	}
	return err
}

func (f *facts) readReservations(ctx context.Context) (err error) {
	f.findings, err = inventory.CheckReservations(ctx, f.cluster)
	return err
}

func (f *facts) readPolicies(ctx context.Context) error {
	list, err := f.cluster.Kube.NetworkingV1().NetworkPolicies(f.cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		f.policies = list.Items
	}
	return err
}

// readKeys reads the keys of all gateways in records.
func (f *facts) readKeys(ctx context.Context) (err error) {
	f.keys = make(map[records.GatewayID]*inventory.Keys)
	for _, p := range f.peerings {
		record := recordOf[records.Peering](f, records.PeeringName(p.Peer))
		if record == nil {
			continue
		}
		for _, id := range record.GatewayIDs() {
			if f.keys[id], err = inventory.ReadKeys(ctx, f.cluster, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *facts) peeringNames() (names []string) {
	for _, p := range f.peerings {
		names = append(names, p.Peer)
	}
	return names
}

// side is a peering as one of its clusters observes it.
type side struct {
	*facts

	status    status.Peering
	record    *records.Peering  // nil: none that is readable
	reports   []*records.Status // by gateway number minus one; nil: missing or late
	peerFacts *facts            // facts of the other cluster; nil: not selected
	peer      *side             // the other cluster's side; nil: unknown
}

func (f *facts) side(p status.Peering) *side {
	s := &side{facts: f, status: p, record: recordOf[records.Peering](f, records.PeeringName(p.Peer))}
	for _, g := range p.Gateways {
		id := records.GatewayID{Peering: p.Peer, Number: g.Number}
		report := recordOf[records.Status](f, id.StatusName())
		if report != nil {
			if g.ReportAge == nil || health.Late(*g.ReportAge, time.Duration(report.Every)) {
				report = nil
			}
		}
		s.reports = append(s.reports, report)
	}
	return s
}

// sideWith returns the peering with another cluster; nil if there is none. If the record or the cluster cannot be read,
// the name decides.
func (f *facts) sideWith(peer *facts, name string) *side {
	for _, p := range f.peerings {
		s := f.side(p)
		switch {
		case name != "" && name != p.Peer:
		case s.record != nil && peer.fabric != nil && s.record.Peer.ClusterID == peer.fabric.ClusterID:
			return s
		case (s.record == nil || peer.fabric == nil) && (p.Peer == peer.name || p.Peer == name):
			return s
		}
	}
	return nil
}

// ready returns the names of the nodes that should take part.
func (s *side) ready() (names []string) {
	for _, n := range s.status.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// ids returns the gateways of the side.
func (s *side) ids() (ids []records.GatewayID) {
	for _, g := range s.status.Gateways {
		ids = append(ids, records.GatewayID{Peering: s.status.Peer, Number: g.Number})
	}
	return ids
}

// nodeReports returns the readable reports of nodes; damaged describes the others.
func (f *facts) nodeReports() (all []records.Node, damaged string) {
	if f.decoded == nil { // cached: checks of each peering call this
		all, err := inventory.Reports(f.leases)
		if err != nil {
			damaged = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		f.decoded = &decodedReports{all, damaged}
	}
	return f.decoded.nodes, f.decoded.damaged
}

// decodedReports are the results of nodeReports.
type decodedReports struct {
	nodes   []records.Node
	damaged string
}
