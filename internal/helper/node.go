//go:build linux

package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
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
	routeSizes routeSizes
	probes     *nodeProbes
	reports    *reporter[nodeReport]

	configMaps, nodes, pods cache.Store

	// internal is the node's own address; the zero value: none is claimed yet.
	internal netip.Addr
	lease    string
	recalled bool        // the Leases were searched for that of an earlier process
	lost     atomic.Bool // the Lease is gone from the API server
	wake     chan struct{}
	older    olderFlows
	doubted  []string // what gateways said of themselves and was not believed, as it was logged
}

// nodeReport is what is written to a Lease.
type nodeReport struct {
	lease string
	node  records.Node
}

// sameButDrift reports whether two reports differ in what other hands did to the kernel at most: that can wait.
func sameButDrift(a, b nodeReport) bool {
	a.node.Drift, b.node.Drift = records.Drift{}, records.Drift{}
	return reflect.DeepEqual(a, b)
}

// Run keeps the node's kernel as the records ask until ctx ends. The process runs Go code on one thread at a time: there
// is little to do, and threads that wake each other take an eighth more of the processor.
func (n Node) Run(ctx context.Context) error {
	runtime.GOMAXPROCS(1)
	kernelHas, err := capabilities()
	if err != nil {
		return fmt.Errorf("ask kernel for its capabilities: %w", err)
	}
	kernel, err := netops.Open()
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	m, metrics := newMirror(), newMetrics()
	l := &nodeLoop{
		Node: n, kernelHas: kernelHas, wake: make(chan struct{}, 1),
		reconciler: newReconciler(kernel, n.Log, metrics), older: olderFlows{kernel: kernel},
	}
	l.reports = newReporter(n.Log, sameButDrift, l.write)
	l.probes = newNodeProbes(n.Log)
	metrics.registry.MustRegister(newRefused(l.probes.sockets))
	defer l.probes.close()
	m.changed = l.wake
	l.follow(m)
	return service{
		Env: n.Env, health: newHealth(), mirror: m, metrics: metrics, kernel: kernel, step: l.step,
		tasks: []func(context.Context){l.reports.run},
	}.run(ctx)
}

// follow sets up what the node reads: its cluster's records, itself and the pods that run on it.
func (l *nodeLoop) follow(m *mirror) {
	wanted, err := labels.NewRequirement(records.LabelComponent, selection.In,
		[]string{records.ComponentFabric, records.ComponentPeering, records.ComponentGateway})
	if err != nil {
		panic(err) // a constant
	}
	l.configMaps = m.follow(m.factory(l.Client, l.Namespace, byLabel(labels.NewSelector().Add(*wanted))).Core().V1().ConfigMaps().Informer())
	l.nodes = m.follow(m.factory(l.Client, "", byField("metadata.name", l.Name)).Core().V1().Nodes().Informer())
	l.pods = m.follow(m.factory(l.Client, "", byField("spec.nodeName", l.Name)).Core().V1().Pods().Informer())
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
	want, err := view.state(l.internal)
	if err != nil {
		return errors.Join(err, l.report(view, nil, false))
	}
	if err := l.older.begin(); err != nil {
		return err
	}
	err = l.pass(want)
	if err == nil {
		err = l.kernel.LiftBootGuard() // the guard stands
	}
	if err != nil {
		return errors.Join(err, l.report(view, nil, false))
	}
	// Before connections are forgotten: probes of a peering that is gone are connections, too.
	// A path that cannot be probed concerns its own peering; the others are not held up.
	probing := l.probes.follow(view, l.internal)
	if err := l.older.forget(view.ranges()); err != nil {
		return errors.Join(probing, err)
	}
	var applied []string
	for _, p := range view.peerings {
		applied = append(applied, p.Name)
	}
	return errors.Join(probing, l.report(view, applied, view.fabric == nil))
}

func (l *nodeLoop) view() (nodeView, error) {
	v, err := view(listed[*corev1.ConfigMap](l.configMaps))
	if err != nil {
		return v, err
	}
	node, err := l.self()
	if err != nil {
		return v, err
	}
	pods := listed[*corev1.Pod](l.pods)
	v.pods = podsOf(node, pods)
	doubted := v.doubt(l.Namespace, pods)
	if !slices.Equal(doubted, l.doubted) {
		for _, what := range doubted {
			l.Log.Warn("gateway is not believed, and its traffic held back", "cause", what)
		}
		l.doubted = doubted
	}
	return v, nil
}

func (l *nodeLoop) self() (*corev1.Node, error) {
	obj, ok, err := l.nodes.GetByKey(l.Name)
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("node %q: no such Node", l.Name), err)
	}
	return obj.(*corev1.Node), nil
}

// claim makes sure that the node has an internal address of the fabric's range.
func (l *nodeLoop) claim(ctx context.Context, v nodeView) error {
	if v.fabric == nil {
		return l.recall(ctx)
	}
	lost := l.lost.Swap(false)
	if !lost && l.internal.IsValid() && nodeRange(v.fabric.InternalCIDR).Contains(l.internal) {
		return nil
	}
	node, err := l.self()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	lease, a, err := claimAddress(ctx, l.Client, l.Namespace, node, v.fabric.InternalCIDR)
	if err != nil {
		return err
	}
	l.internal, l.lease = a, lease.Name
	l.Log.Info("internal address", "address", a)
	return nil
}

// recall finds the Lease that an earlier process of this node reported to, where there is no fabric any more: who
// deleted it waits for the report that the node is clean.
func (l *nodeLoop) recall(ctx context.Context) error {
	if l.lease != "" || l.recalled {
		return nil
	}
	node, err := l.self()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	own, err := ownLeases(ctx, l.Client, l.Namespace, node)
	if err != nil {
		return err
	}
	for _, lease := range own {
		if a, err := records.LeaseAddress(lease.Name); err == nil {
			l.internal, l.lease = a, lease.Name
		}
	}
	l.recalled = true
	return nil
}

// report hands the node's record to its writer.
func (l *nodeLoop) report(v nodeView, applied []string, clean bool) error {
	if l.lease == "" {
		return nil
	}
	r := records.Node{
		Version: records.SchemaVersion, Name: l.Name, Internal: l.internal, Kernel: l.kernelHas,
		PodCIDRs: v.pods.cidrs, Pods: v.pods.stray, Peerings: applied, Clean: clean, Drift: l.drift.record(),
	}
	var err error
	if r.ForwardDrops, err = l.forwardDrops(); err != nil {
		return err
	}
	err = l.measure(v, &r)
	l.reports.set(nodeReport{lease: l.lease, node: r})
	return err
}

// anywhere is an address of which only the default route matters (TEST-NET-1, RFC 5737).
var anywhere = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// measure asks the routing table how packets leave for gateways, pods and the world. The overlay's packets
// bear those addresses and must fit those links.
func (l *nodeLoop) measure(v nodeView, r *records.Node) error {
	smallest := func(mtu int) {
		if mtu > 0 && (r.MTU == 0 || mtu < r.MTU) {
			r.MTU = mtu
		}
	}
	if p, err := netops.PathTo(anywhere); err == nil {
		smallest(p.MTU)
	}
	var errs []error
	if v.fabric != nil {
		// Also to pods of other nodes, which the network plugin may carry in a tunnel of its own.
		mtu, err := l.routeSizes.smallest(v.fabric.PodCIDRs, l.kernel.SmallestMTU)
		errs = append(errs, err)
		smallest(mtu)
	}
	for _, p := range v.peerings {
		g, ok := v.gateways[p.Name]
		if !ok {
			continue
		}
		path, err := netops.PathTo(g.PodIP)
		if err != nil {
			errs = append(errs, fmt.Errorf("path to gateway %q: %w", p.Name, err))
			continue
		}
		smallest(path.MTU)
		if r.OverlaySources == nil {
			r.OverlaySources = map[string]netip.Addr{}
		}
		r.OverlaySources[p.Name] = path.Source
	}
	return errors.Join(errs...)
}

// write puts a report into the annotation of the Lease that holds the node's address.
func (l *nodeLoop) write(ctx context.Context, r nodeReport) error {
	text, err := records.Encode(r.node)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{records.AnnotationNode: text}}})
	if err != nil {
		return err
	}
	_, err = l.Client.CoordinationV1().Leases(l.Namespace).Patch(ctx, r.lease, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		l.lost.Store(true)
		notify(l.wake)
	}
	return err
}
