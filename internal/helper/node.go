//go:build linux

package helper

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Node is the helper of one node, in the node's own network namespace.
type Node struct {
	Env
	Name string // of the Node object
}

// nodeLoop is the state of a running Node.
type nodeLoop struct {
	Node
	reconciler
	kernelHas  records.Capabilities
	routeSizes remembered[int] // bytes; 0: there is no such route
	around     surroundings
	probes     *nodeProbes
	reports    *reporter[nodeReport]
	events     *events
	unused     map[records.GatewayID]bool // as the last pass had it

	fabric, ipam, configMaps, nodes, pods, gateways, leases, apiServers cache.Store

	memory *memory
	faults []string    // as they were logged last
	aging  *time.Timer // wakes the loop when a gateway is not used any more; nil: none was about to
	claims claims
	wake   chan struct{}
	older  olderFlows
}

// Run keeps the node's kernel as the records ask until ctx ends. The process runs Go code on one thread at a time:
// there is little to do, and threads that wake each other take an eighth more of the processor.
func (n Node) Run(ctx context.Context) error {
	runtime.GOMAXPROCS(1)
	n.Log = n.Log.With("node", n.Name)
	kernelHas, err := capabilities()
	if err != nil {
		return fmt.Errorf("ask kernel for its capabilities: %w", err)
	}
	kernel, err := netops.Open()
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	m, metrics := newMirror(n.Client), newMetrics()
	l := &nodeLoop{
		Node: n, kernelHas: kernelHas, wake: m.changed, memory: newMemory(),
		reconciler: newReconciler(kernel, n.Log, metrics), older: olderFlows{kernel: kernel},
	}
	l.reports = newReporter(n.Log, sameButDrift, l.write, l.leaseSays)
	l.events = newEvents(n.Env, "liqonet-node", n.Name, nodeBurst, nodePause)
	l.drift.told = func(names []string) { l.noteOwn(driftRestored, "others changed, restored: "+strings.Join(names, ", ")) }
	l.probes = newNodeProbes(l.wake)
	metrics.registry.MustRegister(newRefused(l.probes.sockets.all))
	defer l.probes.close()
	l.follow(m)
	return service{
		Env: n.Env, health: newLiveness(), mirror: m, metrics: metrics, kernel: kernel, step: l.step,
		first: l.guard,
		tasks: []func(context.Context){l.reports.run, l.reportWitness, l.events.run},
	}.run(ctx)
}

// allBut selects the objects that are not labelled as one of the components.
func allBut(components ...string) labels.Selector {
	others, err := labels.NewRequirement(records.LabelComponent, selection.NotIn, components)
	if err != nil {
		panic(err) // constants
	}
	return labels.NewSelector().Add(*others)
}

// follow sets up what the node reads. What a ConfigMap is follows from its name: the selector by label only spares
// nodes the gateways' reports, which change every ten seconds.
func (l *nodeLoop) follow(m *mirror) {
	gateways := labels.SelectorFromSet(labels.Set{records.LabelComponent: records.ComponentGateway})
	own := labels.SelectorFromSet(labels.Set{records.LabelNode: nodeLabel(l.Name)})
	core := l.Client.CoreV1()
	maps := core.ConfigMaps(l.Namespace)
	l.fabric = follow(m, maps, &corev1.ConfigMap{}, selected{name: records.FabricName})
	l.ipam = follow(m, maps, &corev1.ConfigMap{}, selected{name: records.IPAMName})
	l.configMaps = follow(m, maps, &corev1.ConfigMap{}, selected{
		labels:   allBut(records.ComponentStatus, records.ComponentFabric, records.ComponentIPAM),
		concerns: concernsNodes,
	})
	l.nodes = follow(m, core.Nodes(), &corev1.Node{}, selected{name: l.Name})
	l.pods = follow(m, core.Pods(""), &corev1.Pod{}, selected{field: fields.OneTermEqualSelector("spec.nodeName", l.Name)})
	l.gateways = follow(m, core.Pods(l.Namespace), &corev1.Pod{}, selected{labels: gateways})
	l.leases = follow(m, l.Client.CoordinationV1().Leases(l.Namespace), &coordinationv1.Lease{}, selected{labels: own})
	l.apiServers = follow(m, l.Client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault), &discoveryv1.EndpointSlice{}, selected{name: apiServerSlice})
}

// concernsNodes reports whether nodes follow the ConfigMap of that name: a peering's record, or where its gateway is.
func concernsNodes(name string) bool {
	id, _ := records.IdentityOf(name)
	return id.Component == records.ComponentPeering || id.Component == records.ComponentGateway
}

// step is one pass: records to kernel, then what the kernel holds to the report.
func (l *nodeLoop) step(ctx context.Context) error {
	view, err := l.view()
	if err != nil {
		return err
	}
	if err := l.claim(ctx, view); err != nil {
		return err
	}
	view.unused = l.probes.unused(view)
	err = l.apply(view)
	if err != nil {
		return errors.Join(err, l.report(view, nil))
	}
	lifting := l.lift(view)
	l.tellUse(view)
	// Before connections are forgotten: probes of a peering that is gone are connections, too.
	// A path that cannot be probed concerns its own peering; the others are not held up.
	probing := errors.Join(lifting, l.probes.follow(view, l.claims.internal))
	if err := l.older.forget(view.ranges()); err != nil {
		return errors.Join(probing, err)
	}
	var applied []string
	for _, p := range view.peerings {
		applied = append(applied, p.Name)
	}
	return errors.Join(probing, l.report(view, applied))
}

// errBlind says that a node cannot serve its peerings, and what it does then.
var errBlind = errors.New("no fabric can be read: paths stay as they are, and where there are none, the peers' ranges are held back")

// apply brings the kernel into the state that a view asks for.
func (l *nodeLoop) apply(view nodeView) error {
	if view.blind {
		if serves, err := l.serves(); err != nil || serves {
			return errors.Join(errBlind, err)
		}
	}
	if err := l.older.begin(); err != nil {
		return err
	}
	if err := l.pass(view.state(l.claims.internal)); err != nil {
		return err
	}
	if view.blind {
		return errors.Join(errBlind, l.lift(view))
	}
	return nil
}

// errUnreserved says why a node that has booted keeps its boot guard: that has ranges of peers which nothing else that
// was read has.
var errUnreserved = errors.New("the boot guard stays: ConfigMap " + records.IPAMName + " has not been read")

// lift removes the boot guard once the node's own, which is in the kernel, has the ranges of all peers.
func (l *nodeLoop) lift(view nodeView) error {
	if !view.unreserved {
		return l.kernel.LiftBootGuard()
	}
	stays, err := l.kernel.HasBootGuard()
	if stays {
		err = errors.Join(errUnreserved, err)
	}
	return err
}

// serves reports whether the kernel has paths to peers, which an earlier process made.
func (l *nodeLoop) serves() (bool, error) {
	have, err := l.kernel.Observe()
	if err != nil {
		return false, fmt.Errorf("observe kernel: %w", err)
	}
	return slices.ContainsFunc(have.Routes, func(r netops.Route) bool {
		return r.Table == netops.RoutingTable && r.Type == netops.Unicast
	}), nil
}

func (l *nodeLoop) view() (nodeView, error) {
	node, err := l.self()
	if err != nil {
		return nodeView{}, err
	}
	v, faults := l.memory.view(nodeObjects{
		namespace: l.Namespace,
		fabric:    named[*corev1.ConfigMap](l.fabric, l.Namespace, records.FabricName),
		ipam:      named[*corev1.ConfigMap](l.ipam, l.Namespace, records.IPAMName),
		maps:      listed[*corev1.ConfigMap](l.configMaps),
		node:      node, pods: listed[*corev1.Pod](l.pods), gateways: listed[*corev1.Pod](l.gateways),
		apiServers: l.servers(named[*discoveryv1.EndpointSlice](l.apiServers, corev1.NamespaceDefault, apiServerSlice)),
	}, time.Now())
	l.tell(faults)
	if l.aging != nil {
		l.aging.Stop()
	}
	if v.aging > 0 {
		l.aging = time.AfterFunc(v.aging, func() { notify(l.wake) })
	}
	return v, nil
}

// faultsTold is how many faults are logged and counted: anybody who may write ConfigMaps can make thousands.
const faultsTold = 50

// firstTexts are the first texts, and how many others there are.
func firstTexts(texts []string) []string {
	if len(texts) <= faultsTold {
		return texts
	}
	return append(slices.Clone(texts[:faultsTold]), fmt.Sprintf("and %d more", len(texts)-faultsTold))
}

// tell logs faults if they are others than before, and counts them: the first ones of them.
func (l *nodeLoop) tell(faults []fault) {
	faults = faults[:min(len(faults), faultsTold)]
	texts := make([]string, len(faults))
	l.metrics.faults.Reset()
	for i, f := range faults {
		texts[i] = f.err.Error()
		l.metrics.faults.WithLabelValues(f.object).Set(1)
	}
	if !slices.Equal(texts, l.faults) {
		for i, f := range faults {
			l.Log.Warn("record is not taken as it is; what was taken before stays", "object", f.object, "peering", f.peering, "cause", texts[i])
		}
		if refused := refusedTexts(faults); len(refused) > 0 {
			l.noteOwn(recordRefused, strings.Join(refused, "; "))
		}
		l.faults = texts
	}
}

// refusedTexts are those of faults that last: that the pod of a gateway is not there is none.
func refusedTexts(faults []fault) (texts []string) {
	for _, f := range faults {
		if !errors.Is(f.err, errNoPod) {
			texts = append(texts, f.err.Error())
		}
	}
	return texts
}

// noteOwn has an event written about the node's Lease, if it has one.
func (l *nodeLoop) noteOwn(reason, message string) {
	if l.claims.lease != "" {
		l.events.note("Lease", l.claims.lease, false, reason, message)
	}
}

// tellUse tells of gateways that get packets now and did not, or the other way round: of those that have asked this
// node to witness what becomes of them. All nodes would tell the same.
func (l *nodeLoop) tellUse(v nodeView) {
	for id := range l.probes.faults() {
		switch unused := v.unused[id]; {
		case unused && !l.unused[id]:
			l.events.note("ConfigMap", id.StatusName(), false, failover, "node "+l.Name+" sends packets by other gateways")
		case !unused && l.unused[id]:
			l.events.note("ConfigMap", id.StatusName(), true, failover, "node "+l.Name+" sends packets by this gateway again")
		}
	}
	l.unused = v.unused
}

func (l *nodeLoop) self() (*corev1.Node, error) {
	if node := named[*corev1.Node](l.nodes, "", l.Name); node != nil {
		return node, nil
	}
	return nil, fmt.Errorf("node %q: no such Node", l.Name)
}
