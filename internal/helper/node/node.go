//go:build linux

// Package node is the helper of a node: a loop that reconciles its kernel with the records, the echoes by which it
// chooses among gateways, and what it reports of itself.
package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/claim"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// Helper is the helper of one node, in the node's own network namespace.
type Helper struct {
	helper.Env
	Name string // of the Node object
}

// loop is the state of a running Helper.
type loop struct {
	Helper
	helper.Reconciler
	kernelHas  records.Capabilities
	routeSizes cached[int] // bytes; 0: no such route
	around     cached[records.Surroundings]
	probes     *probes
	reports    *publish.Reporter[report]
	events     *publish.Events
	unused     map[records.GatewayID]bool // as of the last pass

	fabric, ipam, configMaps, nodes, pods, gateways, leases, apiServers cache.Store

	lastValid *lastValid
	aging     *time.Timer // wakes the loop when a gateway expires; nil: none is about to
	claims    claims
	wake      chan struct{}
	// forgotten are the ranges whose older connections were forgotten. At first these are the destinations of routes:
	// an earlier process forgot them, unless it was killed within the milliseconds between both.
	forgotten []netip.Prefix
	begun     bool          // the kernel has been read
	found     *netops.State // as an earlier process left it, until this one has made its own state; nil: not known
	bootErr   error         // why the ranges of the boot guard are not known; nil: they are, or there is none
}

// Run reconciles the node's kernel with the records until ctx ends. The process runs Go code on one thread at a time:
// there is little work, and threads that wake each other take an eighth more CPU time.
func (n Helper) Run(ctx context.Context) error {
	runtime.GOMAXPROCS(1)
	n.Log = n.Log.With("node", n.Name)
	kernelHas, err := capabilities()
	if err != nil {
		return fmt.Errorf("ask kernel for its capabilities: %w", err)
	}
	kernel, err := kernel.Open()
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	objects, metrics := cache.New(n.Client), helper.NewMetrics()
	l := &loop{
		Helper: n, kernelHas: kernelHas, wake: objects.Changed, lastValid: newLastValid(),
		Reconciler: helper.NewReconciler(kernel, n.Log, metrics),
	}
	l.reports = publish.NewReporter(n.Log, sameButDrift, l.write, l.leaseHas)
	// A node has fewer than a gateway, since there are more nodes.
	l.events = n.NewEvents("liqonet-node", n.Name, n.Name, 3, 5*time.Minute)
	l.Event = l.addEvent
	l.probes = newProbes(l.wake)
	metrics.Registry.MustRegister(helper.NewRefused(l.probes.sockets.All))
	defer l.probes.close()
	l.setUpStores(objects)
	return helper.Service{
		Env: n.Env, Health: liveness.New(helper.Stuck), Objects: objects, Metrics: metrics, Kernel: kernel, Step: l.step,
		First: l.guard,
		Tasks: []func(context.Context){l.reports.Run, l.reportWitness, l.events.Run},
	}.Run(ctx)
}

// allBut selects the objects without the label of one of the components.
func allBut(components ...string) labels.Selector {
	others, err := labels.NewRequirement(records.LabelComponent, selection.NotIn, components)
	utilruntime.Must(err) // constants
	return labels.NewSelector().Add(*others)
}

// setUpStores sets up the objects that the node reads. The name of a ConfigMap determines its kind: the label selector
// only saves nodes the gateways' reports, which change every ten seconds.
func (l *loop) setUpStores(objects *cache.Cache) {
	gateways := labels.SelectorFromSet(labels.Set{records.LabelComponent: records.ComponentGateway})
	own := labels.SelectorFromSet(labels.Set{records.LabelNode: claim.NodeLabel(l.Name)})
	core := l.Client.CoreV1()
	maps := core.ConfigMaps(l.Namespace)
	l.fabric = cache.Watch(objects, maps, &corev1.ConfigMap{}, cache.Selection{Name: records.FabricName})
	l.ipam = cache.Watch(objects, maps, &corev1.ConfigMap{}, cache.Selection{Name: records.IPAMName})
	l.configMaps = cache.Watch(objects, maps, &corev1.ConfigMap{}, cache.Selection{
		Labels:   allBut(records.ComponentStatus, records.ComponentFabric, records.ComponentIPAM),
		Concerns: concernsNodes,
	})
	l.nodes = cache.Watch(objects, core.Nodes(), &corev1.Node{}, cache.Selection{Name: l.Name})
	l.pods = cache.Watch(objects, core.Pods(""), &corev1.Pod{}, cache.Selection{Field: fields.OneTermEqualSelector("spec.nodeName", l.Name)})
	l.gateways = cache.Watch(objects, core.Pods(l.Namespace), &corev1.Pod{}, cache.Selection{Labels: gateways})
	l.leases = cache.Watch(objects, l.Client.CoordinationV1().Leases(l.Namespace), &coordinationv1.Lease{}, cache.Selection{Labels: own})
	l.apiServers = cache.Watch(objects, l.Client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault), &discoveryv1.EndpointSlice{}, cache.Selection{Name: apiServerSlice})
}

// concernsNodes reports whether nodes use the ConfigMap of that name: a peering's record, or a gateway's location.
func concernsNodes(name string) bool {
	id, _ := records.IdentityOf(name)
	return id.Component == records.ComponentPeering || id.Component == records.ComponentGateway
}

// step is one pass: from the records to the kernel, then from the kernel to the report.
func (l *loop) step(ctx context.Context) error {
	if err := l.begin(); err != nil {
		return err
	}
	view, err := l.view()
	if err != nil {
		return err
	}
	if err := l.claim(ctx, view); err != nil {
		return err
	}
	view.unused = l.probes.unused(view)
	err = l.apply(view)
	if l.found != nil && (errors.Is(err, errBlind) || errors.Is(err, errPartial)) {
		return err // the report of the earlier process stays: gateways send by it
	}
	if err != nil {
		return errors.Join(err, l.report(view, nil))
	}
	lifting := l.lift(view)
	l.reportUse(view)
	// Before connections are forgotten: probes of a removed peering are connections, too. A path that cannot be probed
	// affects its own peering only.
	probing := errors.Join(lifting, l.probes.update(view, l.claims.internal))
	if err := l.forget(view); err != nil {
		return errors.Join(probing, err)
	}
	var applied []string
	for _, p := range view.Peerings {
		applied = append(applied, p.Name)
	}
	return errors.Join(probing, l.report(view, applied))
}

// forget deletes the connections that a pass leaves with a wrong path or source.
func (l *loop) forget(v view) error {
	if l.Untranslated {
		s := kernel.Sources{Pods: v.pods.prefixes(), Node: l.claims.internal}
		for _, p := range v.Peerings {
			s.Peers = append(s.Peers, p.Seen()...)
		}
		if err := l.forgetUntranslated(s); err != nil {
			return err
		}
		l.Untranslated = false
	}
	return l.forgetOlder(v.ranges())
}

// begin reads the kernel before this process changes it.
func (l *loop) begin() error {
	if l.begun {
		return nil
	}
	have, err := l.Kernel.Observe()
	if err != nil {
		return fmt.Errorf("observe kernel: %w", err)
	}
	for _, r := range have.Routes {
		if r.Table == netops.RoutingTable && !slices.Contains(l.forgotten, r.Dst) {
			l.forgotten = append(l.forgotten, r.Dst)
		}
	}
	l.begun, l.found = true, &have
	return nil
}

// Reasons for which a node does not serve its peerings, and what it does instead.
var (
	errBlind   = errors.New("no fabric can be read: paths stay as they are, and where there are none, the peers' ranges are held back")
	errPartial = errors.New("neither the reservations nor all peerings can be read: paths stay as they are")
)

// apply reconciles the kernel with a view.
func (l *loop) apply(view view) error {
	leads := func(r netops.Route) bool { return r.Table == netops.RoutingTable && r.Leads() }
	if l.found != nil && slices.ContainsFunc(l.found.Routes, leads) { // from an earlier process
		switch {
		case view.blind:
			return errBlind
		case view.partial:
			return errPartial
		}
	}
	if err := l.Pass(view.state(l.claims.internal)); err != nil {
		return err
	}
	l.found = nil
	if view.blind {
		return errors.Join(errBlind, l.lift(view))
	}
	return nil
}

// lift removes the boot guard: the node's own guard, which is in the kernel, has its ranges. If these cannot be read,
// it stays as long as ranges of peers may be unknown.
func (l *loop) lift(view view) error {
	if view.unreserved && l.bootErr != nil {
		return fmt.Errorf("the boot guard stays, as not all ranges of peers are known: %w", l.bootErr)
	}
	return l.Kernel.LiftBootGuard()
}

func (l *loop) view() (view, error) {
	node := cache.Named[*corev1.Node](l.nodes, "", l.Name)
	if node == nil {
		return view{}, fmt.Errorf("node %q: no such Node", l.Name)
	}
	var boot []netip.Prefix
	boot, l.bootErr = l.Kernel.BootRanges()
	v, faults := l.lastValid.view(objects{
		namespace: l.Namespace,
		fabric:    cache.Named[*corev1.ConfigMap](l.fabric, l.Namespace, records.FabricName),
		ipam:      cache.Named[*corev1.ConfigMap](l.ipam, l.Namespace, records.IPAMName),
		maps:      cache.Listed[*corev1.ConfigMap](l.configMaps),
		found:     l.found, boot: boot,
		node: node, pods: cache.Listed[*corev1.Pod](l.pods), gateways: cache.Listed[*corev1.Pod](l.gateways),
		apiServers: l.servers(cache.Named[*discoveryv1.EndpointSlice](l.apiServers, corev1.NamespaceDefault, apiServerSlice)),
	}, time.Now())
	l.ReportFaults(faults)
	if l.aging != nil {
		l.aging.Stop()
	}
	if v.aging > 0 {
		l.aging = time.AfterFunc(v.aging, func() { wakeup.Notify(l.wake) })
	}
	return v, nil
}

// addEvent queues an event about the node's Lease, if it has one.
func (l *loop) addEvent(reason, message string) {
	if l.claims.lease != "" {
		l.events.Add("Lease", l.claims.lease, false, reason, message)
	}
}

// reportUse writes an event for each gateway that starts or stops getting packets, of those for which this node is a
// witness: all nodes would report the same.
func (l *loop) reportUse(v view) {
	for id := range l.probes.faults() {
		switch unused := v.unused[id]; {
		case unused && !l.unused[id]:
			l.events.Add("ConfigMap", id.StatusName(), false, publish.Failover, "node "+l.Name+" sends packets by other gateways")
		case !unused && l.unused[id]:
			l.events.Add("ConfigMap", id.StatusName(), true, publish.Failover, "node "+l.Name+" sends packets by this gateway again")
		}
	}
	l.unused = v.unused
}
