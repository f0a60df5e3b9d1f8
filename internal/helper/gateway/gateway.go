//go:build linux

// Package gateway is the helper of a gateway: a loop that reconciles the kernel in the gateway's pod with the records,
// the echoes between nodes, this gateway and those of the peer, and what it reports of both.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/plain"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
)

// Helper is the helper of a gateway, in the network namespace of its pod.
type Helper struct {
	helper.Env
	ID    records.GatewayID
	Pod   string     // name of this pod
	PodIP netip.Addr // its address in the cluster
	Node  string     // on which it runs
	Keys  string     // folder of the mounted Secret
	KeyID string     // identifies the keys for which the pod was made, as wireguard.KeyID; "": any
	Epoch string     // folder with the pod's epoch, which outlives its processes; "": none
}

// loop is the state of a running Helper.
type loop struct {
	Helper
	helper.Reconciler
	health       *liveness.Probes
	driver       tunnel.Driver // of tunnels with encryption
	plain        tunnel.Driver // of those without
	keysAt       time.Time     // when the keys were made; zero: not known
	passed       *view         // whose state the kernel has; nil: unknown
	echoes       *echoes
	before       time.Time // when the peer last answered an earlier process; zero: unknown
	events       *publish.Events
	lastState    health.State  // in the last event; "": none yet
	reportsSince time.Time     // when the gateway began to report
	measure      chan struct{} // of size one: triggers a report

	// The loop and other tasks exchange these.
	served atomic.Pointer[view]   // of the last successful pass; nil: none yet
	latest atomic.Pointer[report] // shown as metrics; nil: nothing yet

	locations *publish.Reporter[records.Gateway]
	statuses  *publish.Reporter[report]

	fabric, peering, leases cache.Store
	reports                 nodeReports     // decoded
	location, status        cache.Store     // its own objects
	wake                    chan<- struct{} // triggers a pass
}

// Run keeps the gateway in the state of the records until ctx ends and, if there are other gateways, until these carry
// its packets.
func (g Helper) Run(ctx context.Context) error {
	g.Log = g.Log.With("peering", g.ID.Peering, "gateway", g.ID.Number)
	driver, err := g.openKeys(ctx)
	if err != nil {
		return err
	}
	kernel, err := kernel.Open()
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	senders := &senders{}
	defer senders.close()
	objects, metrics := cache.New(g.Client), helper.NewMetrics()
	l := &loop{Helper: g, driver: &driver, plain: plain.New(driver.Derive, senders.of), keysAt: keysMade(g.Keys), health: liveness.New(helper.Stuck), Reconciler: helper.NewReconciler(kernel, g.Log, metrics), wake: objects.Changed, measure: make(chan struct{}, 1)}
	// A node can run several gateways.
	l.events = g.NewEvents("liqonet-gateway", g.Node, l.ID.StatusName(), 10, time.Minute)
	l.Event = func(reason, message string) { l.events.Add("ConfigMap", g.ID.StatusName(), false, reason, message) }
	l.health.Serving = func() bool { return l.latest.Load() != nil } // from the first report on, which has a tunnel
	l.newReporters()
	l.echoes = newEchoes(g.Log, metrics, g.PodIP, g.Node, l.wake)
	l.echoes.derive = driver.Derive
	metrics.Registry.MustRegister(helper.NewRefused(l.echoes.sockets.All), &measurements{g.ID, l.latest.Load})
	defer l.echoes.close()
	l.setUpStores(objects)
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { l.drain(run); end() })()
	defer l.markUnknown(ctx)
	return helper.Service{
		Env: g.Env, Health: l.health, Objects: objects, Metrics: metrics, Kernel: kernel, Step: l.step,
		Tasks: []func(context.Context){l.locations.Run, l.statuses.Run, l.watchTunnels, l.watchSuccessor, l.events.Run},
	}.Run(run)
}

// openKeys returns the driver with the keys of the mounted Secret. The kubelet's copy can be older than the pod: then
// it waits for the keys that the pod was made for.
func (g Helper) openKeys(ctx context.Context) (wireguard.Driver, error) {
	for waited := false; ; waited = true {
		driver, err := wireguard.New(g.Keys)
		if err != nil || g.KeyID == "" || driver.ID() == g.KeyID {
			return driver, err
		}
		if !waited {
			g.Log.Warn("the Secret has other keys than this pod was made for: waiting", "want", g.KeyID, "have", driver.ID())
		}
		if !wakeup.Sleep(ctx, keysEvery) {
			return driver, ctx.Err()
		}
	}
}

// keysEvery is the interval in which a gateway looks for its keys: they are a file.
const keysEvery = time.Second / 4

// setUpStores sets up the objects that the gateway reads: the fabric, its peering's record, the nodes' reports, and its
// own two objects, which others may change.
func (l *loop) setUpStores(objects *cache.Cache) {
	one := func(s cache.Selection) cache.Store {
		return cache.Watch(objects, l.Client.CoreV1().ConfigMaps(l.Namespace), &corev1.ConfigMap{}, s)
	}
	l.fabric, l.peering = one(cache.Selection{Name: records.FabricName}), one(cache.Selection{Name: records.PeeringName(l.ID.Peering)})
	l.location = one(cache.Selection{Name: l.ID.Name(), Quiet: true})
	l.status = one(cache.Selection{Name: l.ID.StatusName(), Quiet: true})
	l.leases = cache.Watch(objects, l.Client.CoordinationV1().Leases(l.Namespace), &coordinationv1.Lease{}, cache.Selection{
		Labels: labels.SelectorFromSet(labels.Set{records.LabelComponent: records.ComponentNode}),
	})
}

// step is one pass. The firewall is applied before the tunnel exists: objects that need the tunnel's link are skipped
// in the first pass and created by the one after it.
func (l *loop) step(context.Context) error {
	if l.echoes.own.epoch.Load() == 0 {
		l.begin()
		l.readKnownEndpoints()
		l.before = l.lastEcho()
		l.resumeTransports()
		l.resumePorts()
	}
	v, damage := l.view()
	if v == nil {
		return damage
	}
	return errors.Join(damage, l.serve(*v))
}

// resumePorts continues with the ports on which an earlier process had the tunnels of a client without encryption.
func (l *loop) resumePorts() {
	for number := 1; number <= records.MaxGateways; number++ {
		if n := datapath.RenewalsAt(plain.ListenPort(netops.TunnelLink(number))); n > 0 {
			t := l.echoes.tunnel(number)
			l.echoes.mu.Lock()
			t.renewal.ports = n
			l.echoes.mu.Unlock()
		}
	}
}

// serve reconciles kernel, tunnels and echoes with a view. A tunnel with an error does not block the others.
func (l *loop) serve(v view) error {
	if done, err := l.serveNodes(v); done || err != nil {
		return err
	}
	want := v.state()
	l.passed = nil
	if err := l.Pass(want); err != nil {
		return err
	}
	l.passed = &v
	changed, errTunnels := l.bringTunnels(v)
	if changed {
		l.ForgetReached() // objects that were removed with a replaced link are not drift
		if err := l.Pass(want); err != nil {
			return errors.Join(errTunnels, err)
		}
	}
	if errTunnels != nil && len(v.own().Tunnels) == 1 {
		return errTunnels
	}
	l.reportUse(v)
	if err := l.echoes.apply(v); err != nil {
		return errors.Join(errTunnels, err)
	}
	errTunnels = errors.Join(errTunnels, l.echoes.accept(v)) // UDP does not depend on it
	if err := l.forgetHosts(v); err != nil {
		return errors.Join(errTunnels, err)
	}
	l.setServed(&v)
	wakeup.Notify(l.measure)
	return errTunnels
}

func (l *loop) setServed(v *view) {
	v.drift = l.Drift
	l.served.Store(v)
}

// reportUse writes an event for each tunnel that starts or stops carrying packets.
func (l *loop) reportUse(v view) {
	before := l.served.Load()
	if before == nil {
		return
	}
	for i := range v.own().Tunnels {
		why, did := v.unused[i+1], before.unused[i+1]
		if (why == "") == (did == "") {
			continue
		}
		message := fmt.Sprintf("the tunnel to gateway %d of the peer carries packets", i+1)
		if why != "" {
			message = fmt.Sprintf("the tunnel to gateway %d of the peer carries no packets: %s", i+1, why)
		}
		l.events.Add("ConfigMap", l.ID.StatusName(), why == "", publish.Failover, message)
	}
}

// forgetHosts deletes the conntrack entries of hosts that are no longer exposed: these would forward any packets to
// their addresses. Hosts of an earlier process are unknown, but no rule accepts their packets.
func (l *loop) forgetHosts(v view) error {
	before := l.served.Load()
	if before == nil {
		return nil
	}
	var gone []netip.Prefix
	now := v.exposed()
	for _, e := range before.exposed() {
		if !slices.Contains(now, e) {
			gone = append(gone, cidr.Single(e.Address))
		}
	}
	return l.Kernel.FlushConntrack(gone)
}

// view returns the desired state from the records, nil if it is unknown. For a record that is unreadable or was
// deleted, it uses the last valid version of this process, and returns an error as well.
func (l *loop) view() (*view, error) {
	f, errFabric := single[records.Fabric](l.fabric, l.Namespace, records.FabricName)
	if errFabric == nil && f.Overlay.Kind == "" {
		errFabric = fmt.Errorf("ConfigMap %s: the overlay's kind is not decided: %w", records.FabricName, helper.ErrWaiting)
	}
	p, errPeering := single[records.Peering](l.peering, l.Namespace, records.PeeringName(l.ID.Peering))
	if errPeering == nil && l.ID.Number > len(p.Gateways) {
		errPeering = fmt.Errorf("ConfigMap %s: there is no gateway %d: %w", records.PeeringName(l.ID.Peering), l.ID.Number, helper.ErrWaiting)
	}
	damage, served := errors.Join(errFabric, errPeering), l.served.Load()
	last := cmp.Or(served, &view{})
	var faults []serving.Fault
	if errFabric != nil {
		f = last.fabric
		faults = append(faults, serving.Fault{Object: records.FabricName, Err: errFabric})
	}
	if errPeering != nil {
		p = last.peering
		faults = append(faults, serving.Fault{Object: records.PeeringName(l.ID.Peering), Err: errPeering})
	}
	if damage != nil && served == nil {
		l.ReportFaults(faults)
		return nil, damage
	}
	nodes, refused := l.reports.read(l.leases, f.InternalCIDR())
	l.Metrics.Refused.Set(float64(len(refused)))
	for _, err := range refused {
		faults = append(faults, serving.Fault{Err: err})
	}
	l.ReportFaults(faults)
	v := &view{id: l.ID, fabric: f, peering: p, nodes: nodes, claims: l.reports.claims, pod: l.PodIP, vni: plain.VNI(l.driver.Derive), apiServers: l.APIServers()}
	v.carried, v.renewed = l.echoes.carried(v.own()), l.echoes.renewed()
	v.unused, v.over = l.echoes.unused(v.own(), *p.Settings.Complete().GatewayMode), l.echoes.own.outlived.Load()
	return v, damage
}

// single returns the record of one ConfigMap.
func single[T records.Document](s cache.Store, namespace, name string) (T, error) {
	cm := cache.Named[*corev1.ConfigMap](s, namespace, name)
	if cm == nil {
		var none T
		return none, fmt.Errorf("ConfigMap %s: %w", name, helper.ErrWaiting)
	}
	return cache.Record[T](cm)
}
