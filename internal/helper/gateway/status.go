//go:build linux

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/tunnel"
)

// tunnelEvery is the interval at which a gateway reads device and echoes. It is also the maximum time until external
// changes of the device are restored: the kernel does not notify of them.
const tunnelEvery = 500 * time.Millisecond

// newsPause is the time in which news of echoes become one report: connect waits for sizes of paths and for nodes that
// were verified for the first time.
const newsPause = 50 * time.Millisecond

// newsBurst is the number of reports that news cause beside the regular ones. After that they cause no more than
// these: a peer can change what is news with every echo.
const newsBurst = 20

// watchTunnels reads devices and echoes and passes the results to the writers, until ctx ends.
func (l *loop) watchTunnels(ctx context.Context) {
	tick := time.NewTicker(tunnelEvery)
	news := rate.NewLimiter(rate.Every(tunnelEvery), newsBurst)
	defer tick.Stop()
	for {
		l.report()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.measure:
		case <-l.echoes.news:
			if !wakeup.Sleep(ctx, max(newsPause, news.Reserve().Delay())) {
				return
			}
		}
	}
}

// report passes the gateway's location and status to their writers, if there are any results.
func (l *loop) report() {
	v, epoch := l.served.Load(), l.echoes.own.epoch.Load()
	if v == nil {
		return
	}
	if pod, e := l.recorded(); pod != l.Pod && uint32(e) > epoch {
		wakeup.Notify(l.echoes.claim)
		return // the later pod reports
	}
	all, observed, implementation := l.readTunnels()
	if implementation == "" {
		return // none is open
	}
	location := records.Gateway{
		Version: records.SchemaVersion, Pod: l.Pod, Node: l.Node, PodIP: l.PodIP, Epoch: epoch,
	}
	location.PeerNodes, location.PeerEndpoints = l.echoes.learned()
	if len(observed) > 0 {
		location.Endpoint, location.OtherEndpoints = observed[0], observed[1:]
	}
	l.locations.Set(location)
	s := records.Status{
		Version: records.SchemaVersion, Time: publish.Now(), Every: records.Duration(health.Every(l.echoes.nodes.watched())), KeyCreated: l.keysAt, Pod: l.Pod,
		Implementation: implementation, Overlay: v.fabric.Overlay.Kind,
		TunnelStatus: summary(all), Nodes: l.echoes.nodes.statuses(),
		Drift: v.drift, Exposed: v.exposed(),
	}
	if len(all) > 1 {
		s.Tunnels = all
	}
	if s.LastEcho.IsZero() {
		s.LastEcho = publish.Stamp(l.before)
	}
	if err := l.health.Failed(); err != nil {
		s.Failed = records.Failures{records.Brief(err.Error())}
	}
	r := report{Status: s, mtu: v.peering.MTU}
	r.state, r.reason = r.judge(0)
	l.latest.Store(&r)
	l.reportState(r.state, r.reason)
	l.statuses.Set(r)
}

// settling is the time after its start during which a gateway reports no state but healthy: until then it has other
// states for moments.
const settling = 10 * time.Second

// reportState writes an event if the state of the peering has changed.
func (l *loop) reportState(state health.State, reason string) {
	before := cmp.Or(l.lastState, health.Connecting)
	l.reportsSince = cmp.Or(l.reportsSince, time.Now())
	if state == before || state != health.Healthy && time.Since(l.reportsSince) < settling {
		return
	}
	l.lastState = state
	message := fmt.Sprintf("%s, was %s", state, before)
	if reason != "" {
		message += ": " + reason
	}
	l.Log.Info("state of the peering", "state", state, "before", before, "reason", reason)
	l.events.Add("ConfigMap", l.ID.StatusName(), state == health.Healthy, publish.StateChanged, message)
}

// report is the report of a gateway: measurements, and the resulting state.
type report struct {
	records.Status
	mtu    int // of the peering, bytes
	state  health.State
	reason string
}

func sameJudgment(a, b report) bool {
	return a.Every == b.Every && a.state == b.state && health.Same(a.Status, b.Status)
}

// beside returns the data in the ConfigMap besides the record.
func (r report) beside() map[string]string {
	return map[string]string{records.StateKey: string(r.state), records.ReasonKey: publish.Brief(r.reason)}
}

// markUnknown sets the state to unknown before a gateway exits, so that its last reported state is not taken as
// current. A gateway that is killed cannot do so.
func (l *loop) markUnknown(ctx context.Context) {
	if l.served.Load() == nil || l.echoes.own.outlived.Load() || l.succeeded() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	data := map[string]string{records.StateKey: string(health.Unknown), records.ReasonKey: "the gateway has ended"}
	if _, err := publish.Patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), l.ID.StatusName(), struct{}{}, data); err != nil {
		l.Log.Warn("state not marked as unknown", "error", err)
	}
}

// markTimeout is short: the packets of a single gateway wait for its successor.
const markTimeout = time.Second

// lastEcho returns when the peer last answered an earlier process, from that process's report: a peer that no longer
// answers is down, not connecting. A time in the future is ignored: one of the clocks is wrong.
func (l *loop) lastEcho() time.Time {
	s, _ := single[records.Status](l.status, l.Namespace, l.ID.StatusName()) // an unreadable record has no time
	age := time.Since(s.LastEcho)
	if s.LastEcho.IsZero() || age < 0 {
		return time.Time{}
	}
	return time.Now().Add(-age)
}

// readTunnels returns the measurements of all tunnels, also of those of a view that is not served yet, the endpoints
// from which the peer's gateways answered, and the implementation of the first open tunnel.
func (l *loop) readTunnels() (all []records.TunnelStatus, endpoints []netip.AddrPort, implementation records.Implementation) {
	for _, t := range l.echoes.all() {
		stats, err := t.stats()
		if err != nil {
			t.log.Warn("read the tunnel's state", "error", err)
		}
		implementation = cmp.Or(implementation, records.Implementation(stats.Implementation))
		if stats.Changed {
			wakeup.Notify(l.wake)
		}
		remote, carried, congestion := t.transport(stats)
		t.counted(stats.RxBytes)
		from := answeredAt(stats)
		if carried && from.IsValid() {
			from = t.entersBy()
		}
		t.measure(l.echoes.underlay(), from, carried)
		if from.IsValid() && !slices.Contains(endpoints, from) {
			endpoints = append(endpoints, from)
		}
		s := records.TunnelStatus{
			Endpoint: remote, Session: records.Session{Since: publish.Stamp(stats.Session.Since), Usable: stats.Session.Usable}, RxBytes: stats.RxBytes, TxBytes: stats.TxBytes,
		}
		if carried {
			s.Transport, s.Congestion = records.WebSocket, congestion
		}
		t.describe(&s)
		all = append(all, s)
	}
	return all, endpoints, implementation
}

// summary returns the tunnel that was answered last, with the bytes of all. Of the answered ones, it is always the
// first: a report is written immediately when another one replaces it.
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

// answeredAt returns the endpoint of a peer that has answered; before that the endpoint is not confirmed.
func answeredAt(s tunnel.Stats) netip.AddrPort {
	if s.Session.Since.IsZero() {
		return netip.AddrPort{}
	}
	return s.Endpoint
}

// statusRate is the limit of writes of a status, as publish.NewsRate: only users of the gateway watch it.
var statusRate = rate.Every(2 * time.Second)

// never treats every difference as important.
func never[T any](_, _ T) bool { return false }

// newReporters sets up the writers of the gateway's records.
func (l *loop) newReporters() {
	l.locations = publish.NewReporter(l.Log, never, func(ctx context.Context, g records.Gateway) (string, error) {
		return l.writeRecord(ctx, l.ID.Name(), g, nil)
	}, func(_ records.Gateway, text string) bool {
		return l.unchanged(l.location, l.ID.Name(), text, nil)
	})
	l.statuses = publish.NewReporter(l.Log, sameJudgment, func(ctx context.Context, r report) (string, error) {
		return l.writeRecord(ctx, l.ID.StatusName(), r.Status, r.beside())
	}, func(r report, text string) bool {
		return l.unchanged(l.status, l.ID.StatusName(), text, r.beside())
	})
	l.statuses.Every = func(r report) time.Duration { return time.Duration(r.Every) }
	l.locations.News, l.statuses.News = rate.NewLimiter(publish.NewsRate, publish.NewsBurst), rate.NewLimiter(statusRate, publish.NewsBurst)
}

// unchanged reports whether one of the gateway's own ConfigMaps is as the gateway wrote it. A deleted one counts as
// unchanged: only the CLI can create it again.
func (l *loop) unchanged(s cache.Store, name, text string, beside map[string]string) bool {
	cm := cache.Named[*corev1.ConfigMap](s, l.Namespace, name)
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

// writeRecord writes a record to a ConfigMap of the CLI: a gateway may change it, not create it. This also restores
// changed labels.
func (l *loop) writeRecord(ctx context.Context, name string, r records.Document, beside map[string]string) (string, error) {
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
	_, err = publish.Patch(ctx, l.Client.CoreV1().ConfigMaps(l.Namespace), name, map[string]any{"labels": id.Labels()}, data)
	return text, err
}
