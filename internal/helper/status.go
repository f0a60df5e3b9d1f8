//go:build linux

package helper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/tunnel"
)

// tunnelEvery is how often a gateway reads what device and echoes know. What others change on the device is back
// after that at the latest: the kernel tells nobody of it.
const tunnelEvery = 500 * time.Millisecond

// watchTunnel reads what device and echoes know and hands it to the writers, until ctx ends.
func (l *gatewayLoop) watchTunnel(ctx context.Context) {
	tick := time.NewTicker(tunnelEvery)
	defer tick.Stop()
	for {
		l.report()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// report hands the gateway's location and status to their writers, once there is something to say.
func (l *gatewayLoop) report() {
	v := l.served.Load()
	if v == nil {
		return
	}
	if pod, e := l.recorded(l.ownLocation()); pod != l.Pod && e > l.echoes.own.epoch {
		notify(l.echoes.own.claim)
		return // the later pod reports
	}
	implementation := l.tunnels.implementation()
	if implementation == "" {
		return // none is open
	}
	all, heard := l.readTunnels()
	location := records.Gateway{
		Version: records.SchemaVersion, Pod: l.Pod, Node: l.Node, PodIP: l.PodIP, PeerNodes: l.echoes.peers.current(),
		PeerEndpoints: l.echoes.endpoints.current(), Epoch: uint32(l.echoes.own.epoch),
	}
	if len(heard) > 0 {
		location.Endpoint, location.OtherEndpoints = heard[0], heard[1:]
	}
	l.locations.set(location)
	s := records.Status{
		Version: records.SchemaVersion, Time: now(), Every: records.Duration(health.Every(l.echoes.nodes.watched())), KeyCreated: l.keys.created, Pod: l.Pod,
		Implementation: implementation, Overlay: v.fabric.Overlay.Kind,
		TunnelStatus: summary(all), Nodes: l.echoes.nodes.statuses(),
		Drift: l.drift.record(), Exposed: v.exposed(),
	}
	if len(all) > 1 {
		s.Tunnels = all
	}
	if s.LastEcho.IsZero() {
		s.LastEcho = l.lastEcho()
	}
	if err := l.health.failed(); err != nil {
		s.Failed = records.Failures{records.Brief(err.Error())}
	}
	m := measured{s, v.peering.MTU}
	l.latest.Store(&m)
	state, reason := m.judge(0)
	l.tellState(state, reason)
	l.statuses.set(gatewayReport{s, state, reason})
}

// settling is how long after its begin a gateway tells of no state but healthy: until then it has other ones for
// moments.
const settling = 10 * time.Second

// tellState has an event written if the state of the peering has changed.
func (l *gatewayLoop) tellState(state health.State, reason string) {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	before := cmp.Or(l.state.told, health.Connecting)
	if l.state.since.IsZero() {
		l.state.since = time.Now()
	}
	if state == before || state != health.Healthy && time.Since(l.state.since) < settling {
		return
	}
	l.state.told = state
	message := fmt.Sprintf("%s, was %s", state, before)
	if reason != "" {
		message += ": " + reason
	}
	l.Log.Info("state of the peering", "state", state, "before", before, "reason", reason)
	l.events.note("ConfigMap", l.ID.StatusName(), state == health.Healthy, stateChanged, message)
}

// toldState is the state that the last event told.
type toldState struct {
	mu    sync.Mutex
	told  health.State // "": none yet
	since time.Time    // when the gateway began to report
}

// gatewayReport is what a gateway reports: measurements, and the state that follows from them.
type gatewayReport struct {
	records.Status
	state  health.State
	reason string
}

func sameJudgment(a, b gatewayReport) bool {
	return a.Every == b.Every && a.state == b.state && health.Same(a.Status, b.Status)
}

// beside is what stands beside the record.
func (r gatewayReport) beside() map[string]string {
	return map[string]string{records.StateKey: string(r.state), records.ReasonKey: brief(r.reason)}
}

// farewell marks the state as unknown when a gateway ends, so that nobody waits for the one that it reported last. One
// that ends in another way cannot do so.
func (l *gatewayLoop) farewell(ctx context.Context) {
	if l.served.Load() == nil || l.echoes.own.outlived.Load() || l.succeeded() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellTimeout)
	defer cancel()
	data := map[string]string{records.StateKey: string(health.Unknown), records.ReasonKey: "the gateway has ended"}
	if _, err := patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), l.ID.StatusName(), struct{}{}, data); err != nil {
		l.Log.Warn("state not marked as unknown", "error", err)
	}
}

// farewellTimeout is short: the packets of a gateway that is the only one wait for its successor.
const farewellTimeout = time.Second

// lastEcho is when the peer answered an earlier process, as that has reported it: a peer that answers no more is down,
// not connecting. A time that is still to come tells nothing: the clock of that process was wrong, or this one is.
func (l *gatewayLoop) lastEcho() time.Time {
	before := l.before.Load()
	if before == nil {
		cm := named[*corev1.ConfigMap](l.status, l.Namespace, l.ID.StatusName())
		if cm == nil {
			return time.Time{}
		}
		s, _ := recordOf[records.Status](cm) // one that cannot be read tells nothing
		before = &time.Time{}
		if age := time.Since(s.LastEcho); !s.LastEcho.IsZero() && age >= 0 {
			*before = time.Now().Add(-age)
		}
		l.before.Store(before) // both the loop and watchTunnel report
	}
	return stamp(*before)
}

// readTunnels returns what is measured of each tunnel, and the endpoints at which the peer's gateways are heard.
func (l *gatewayLoop) readTunnels() (all []records.TunnelStatus, endpoints []netip.AddrPort) {
	for _, t := range l.tunnels.list() {
		stats := t.stats()
		if stats.Changed {
			notify(l.wake)
		}
		t.echoes.renewal.counted(stats.RxBytes)
		from := heard(stats)
		t.echoes.measure(l.echoes.underlay(), from)
		if from.IsValid() && !slices.Contains(endpoints, from) {
			endpoints = append(endpoints, from)
		}
		s := records.TunnelStatus{
			Endpoint: stats.Endpoint, LastHandshake: stamp(stats.LastHandshake), RxBytes: stats.RxBytes, TxBytes: stats.TxBytes,
		}
		t.echoes.describe(&s)
		all = append(all, s)
	}
	return all, endpoints
}

// summary is the tunnel that was answered last, with the bytes of all. Of those that are answered, it is always the
// first: a report is worth writing when another one takes its place.
func summary(all []records.TunnelStatus) records.TunnelStatus {
	latest := slices.MaxFunc(all, func(a, b records.TunnelStatus) int { return a.LastEcho.Compare(b.LastEcho) }).LastEcho
	i := slices.IndexFunc(all, func(t records.TunnelStatus) bool { return latest.Sub(t.LastEcho) < health.EchoSilence })
	s := all[i]
	s.Unused, s.RxBytes, s.TxBytes = "", 0, 0
	for _, t := range all {
		s.RxBytes += t.RxBytes
		s.TxBytes += t.TxBytes
	}
	return s
}

// heard is the endpoint of a peer that has answered; before that an endpoint is only a hope.
func heard(s tunnel.Stats) netip.AddrPort {
	if s.LastHandshake.IsZero() {
		return netip.AddrPort{}
	}
	return s.Endpoint
}

func now() time.Time { return stamp(time.Now()) }

// stamp is a time by the clock as it is now, without what a reader of a status does not need; the zero time stays zero.
// If the clock was set back since, what came before would else seem to be still to come, and a path that is dead
// healthy.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(-now.Sub(t)).UTC().Truncate(time.Millisecond) // Sub reads no clock that is set, Add changes one
}

// How often a gateway writes what its peer can change at will: the peer names nodes, roams, and answers or does not.
// All nodes follow where a gateway is, so that each write of that has all of them make a pass; nobody but the gateway's
// own user follows a status.
var (
	locationRate = rate.Every(10 * time.Second)
	statusRate   = rate.Every(2 * time.Second)
)

// newsBurst is how many may be written at once before those rates hold: as many as a peering has to tell that begins.
const newsBurst = 10

// newReporters sets up the writers of the gateway's records.
func (l *gatewayLoop) newReporters() {
	l.locations = newReporter(l.Log, never, func(ctx context.Context, g records.Gateway) (string, error) {
		return l.writeRecord(ctx, l.ID.Name(), g, nil)
	}, func(_ records.Gateway, text string) bool {
		return l.stands(l.location, l.ID.Name(), text, nil)
	})
	l.statuses = newReporter(l.Log, sameJudgment, func(ctx context.Context, r gatewayReport) (string, error) {
		return l.writeRecord(ctx, l.ID.StatusName(), r.Status, r.beside())
	}, func(r gatewayReport, text string) bool {
		return l.stands(l.status, l.ID.StatusName(), text, r.beside())
	})
	l.statuses.every = func(r gatewayReport) time.Duration { return time.Duration(r.Every) }
	l.locations.news, l.statuses.news = rate.NewLimiter(locationRate, newsBurst), rate.NewLimiter(statusRate, newsBurst)
}

// stands reports whether one of the gateway's own ConfigMaps is as the gateway wrote it. One that was deleted counts as
// such: only the CLI can make it again.
func (l *gatewayLoop) stands(s cache.Store, name, text string, beside map[string]string) bool {
	cm := named[*corev1.ConfigMap](s, l.Namespace, name)
	id, _ := records.IdentityOf(name)
	if cm == nil {
		return true
	}
	for key, value := range beside {
		if cm.Data[key] != value {
			return false
		}
	}
	return cm.Data[records.DataKey] == text && id.CheckLabels(cm.Labels) == nil
}

// writeRecord puts a record into a ConfigMap that the CLI has made: a gateway may change it, not create it. Labels that
// others have changed come back.
func (l *gatewayLoop) writeRecord(ctx context.Context, name string, r records.Document, beside map[string]string) (string, error) {
	text, err := records.Encode(r)
	if err != nil {
		return "", err
	}
	if l.echoes.own.outlived.Load() {
		return "", errors.New("a later pod of this gateway reports")
	}
	id, _ := records.IdentityOf(name)
	data := map[string]string{records.DataKey: text}
	maps.Copy(data, beside)
	_, err = patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), name, map[string]any{"labels": id.Labels()}, data)
	return text, err
}
