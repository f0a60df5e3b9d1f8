//go:build linux

package helper

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/tunnel"
)

// tunnelEvery is how often a gateway reads what device and echoes know. What others change on the device is back
// after that at the latest: the kernel tells nobody of it.
const tunnelEvery = 500 * time.Millisecond

// Ages within which an echo counts as fresh, in a gateway's eyes. One or two may be lost.
const (
	freshEcho     = 3 * time.Second  // of the peer's gateway
	freshNodeEcho = 4 * overlayEvery // of a node
	freshProof    = 3*proofEvery + 2*overlayEvery
)

// muchLoss is the share of lost echoes from which on a tunnel is of no use.
const muchLoss = 0.5

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
	d, v := l.device.Load(), l.served.Load()
	if d == nil || v == nil {
		return
	}
	stats, err := d.Stats()
	if err != nil {
		l.Log.Warn("read the tunnel's state", "error", err)
		return
	}
	if stats.Changed {
		notify(l.wake)
	}
	l.echoes.measure(*v, heard(stats))
	peerNodes := l.echoes.peerNodes()
	l.locations.set(records.Gateway{
		Version: records.SchemaVersion, Pod: l.Pod, Node: l.Node, PodIP: l.PodIP,
		Endpoint: heard(stats), PeerNodes: peerNodes,
	})
	s := records.Status{
		Version: records.SchemaVersion, Time: now(), Pod: l.Pod,
		Implementation: records.Implementation(d.Implementation()), Overlay: v.fabric.Overlay.Kind,
		Endpoint: stats.Endpoint, LastHandshake: stamp(stats.LastHandshake),
		RxBytes: stats.RxBytes, TxBytes: stats.TxBytes, Drift: l.drift.record(), Exposed: v.exposed(),
	}
	l.echoes.describe(&s, *v)
	if err := l.health.ready(); err != nil {
		s.Failed = []string{err.Error()}
	}
	l.statuses.set(s)
}

// heard is the endpoint of a peer that has answered; before that an endpoint is only a hope.
func heard(s tunnel.Stats) netip.AddrPort {
	if s.LastHandshake.IsZero() {
		return netip.AddrPort{}
	}
	return s.Endpoint
}

func now() time.Time { return stamp(time.Now()) }

// stamp drops what a reader of a status does not need; the zero time stays zero.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// sameCondition reports whether nothing passed from good to bad or back between two statuses.
func sameCondition(a, b records.Status) bool {
	return reflect.DeepEqual(condition(a), condition(b))
}

// condition is a status without its counters: what is worth telling at once when it changes.
func condition(s records.Status) []string {
	fresh := func(t time.Time, within time.Duration) bool { return !t.IsZero() && s.Time.Sub(t) < within }
	c := make([]string, 0, 5+len(s.Failed)+2*len(s.Exposed)+len(s.Nodes))
	c = append(c, s.Pod, string(s.Implementation), string(s.Overlay), s.Endpoint.String(),
		fmt.Sprint(s.LastHandshake.IsZero(), fresh(s.LastEcho, freshEcho), s.Loss >= muchLoss, s.Path))
	c = append(c, s.Failed...)
	for _, e := range s.Exposed {
		c = append(c, e.Host.String(), e.Address.String())
	}
	for _, n := range s.Nodes {
		c = append(c, fmt.Sprint(n.Name, fresh(n.LastEcho, freshNodeEcho), fresh(n.LastProof, freshProof), n.Path, n.Refused))
	}
	return c
}

// How often a gateway writes what its peer can change at will: the peer names nodes, roams, and answers or does not. All
// nodes follow where a gateway is, so that each write of that has all of them make a pass; nobody but the gateway's own
// user follows a status.
var (
	locationRate = rate.Every(10 * time.Second)
	statusRate   = rate.Every(2 * time.Second)
)

// newsBurst is how many may be written at once before those rates hold: as many as a peering has to tell that begins.
const newsBurst = 10

// newReporters sets up the writers of the gateway's records.
func (l *gatewayLoop) newReporters() {
	l.locations = newReporter(l.Log, never, func(ctx context.Context, g records.Gateway) (string, error) {
		return l.writeRecord(ctx, records.GatewayName(l.Peering), g)
	})
	l.statuses = newReporter(l.Log, sameCondition, func(ctx context.Context, s records.Status) (string, error) {
		return l.writeRecord(ctx, records.StatusName(l.Peering), s)
	})
	l.locations.news, l.statuses.news = rate.NewLimiter(locationRate, newsBurst), rate.NewLimiter(statusRate, newsBurst)
	l.locations.kept = func(_ records.Gateway, text string) bool {
		return l.stands(l.location, records.GatewayName(l.Peering), text)
	}
	l.statuses.kept = func(_ records.Status, text string) bool {
		return l.stands(l.status, records.StatusName(l.Peering), text)
	}
}

// stands reports whether one of the gateway's own ConfigMaps is as the gateway wrote it. One that was deleted counts as
// such: only the CLI can make it again.
func (l *gatewayLoop) stands(s cache.Store, name, text string) bool {
	cm := named[*corev1.ConfigMap](s, l.Namespace, name)
	id, _ := records.IdentityOf(name)
	return cm == nil || cm.Data[records.DataKey] == text && id.CheckLabels(cm.Labels) == nil
}

// writeRecord puts a record into a ConfigMap that the CLI has made: a gateway may change it, not create it. Labels that
// others have changed come back.
func (l *gatewayLoop) writeRecord(ctx context.Context, name string, r records.Document) (string, error) {
	text, err := records.Encode(r)
	if err != nil {
		return "", err
	}
	id, _ := records.IdentityOf(name)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": id.Labels()}, "data": map[string]string{records.DataKey: text},
	})
	if err != nil {
		return "", err
	}
	_, err = l.Client.CoreV1().ConfigMaps(l.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return text, err
}
