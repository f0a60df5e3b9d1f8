//go:build linux

package gateway

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// measurements exports the latest report of a gateway, which it makes twice a second, as metrics.
type measurements struct {
	latest func() *measured // nil: none yet

	state, nodes, proven, key                                *prometheus.Desc
	up, used, trip, loss, received, sent, handshake, pathMTU *prometheus.Desc
}

// measured is a report, and the MTU of its peering in bytes.
type measured struct {
	records.Status
	mtu int
}

func newMeasurements(gateway records.GatewayID, latest func() *measured) *measurements {
	own := prometheus.Labels{"peering": gateway.Peering, "gateway": strconv.Itoa(gateway.Number)}
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("liqonet_"+name, help, labels, own)
	}
	tunnel := func(name, help string) *prometheus.Desc { return of("tunnel_"+name, help, "peer_gateway") }
	return &measurements{
		latest:    latest,
		state:     of("gateway_state", "State of the peering as this gateway sees it: 1 for the state that it has, 0 for all others.", "state"),
		nodes:     of("gateway_nodes", "Nodes of this cluster that have reported."),
		proven:    of("gateway_nodes_verified", "Nodes that serve the peering, and whose full-size packets nodes of the peer have answered within four seconds."),
		key:       of("gateway_key_created_timestamp_seconds", "Unix time at which the key pair of the gateway was made; absent if it is not known."),
		up:        tunnel("up", "1 if the peer's gateway has answered an echo within three seconds, else 0."),
		used:      tunnel("used", "1 if the gateway sends packets of pods by this tunnel, 0 if it uses others."),
		trip:      tunnel("round_trip_seconds", "Median round trip of the last echoes between the gateways."),
		loss:      tunnel("loss_ratio", "Share of echoes between the gateways without an answer, 0 to 1, over ten seconds."),
		received:  tunnel("received_bytes_total", "Bytes received by WireGuard."),
		sent:      tunnel("transmitted_bytes_total", "Bytes sent by WireGuard."),
		handshake: tunnel("last_handshake_timestamp_seconds", "Unix time of the last WireGuard handshake; absent before the first."),
		pathMTU:   tunnel("path_mtu_bytes", "Path MTU between the gateways, outside the tunnel; absent while it is not known."),
	}
}

// names returns the names of the nodes that have reported.
func (m measured) names() (names []string) {
	for _, n := range m.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// judge returns the state of the peering from a report of that age, as its gateway observes it.
func (m measured) judge(age time.Duration) (health.State, string) {
	return health.Judge(health.Observation{Status: &m.Status, Age: age, Every: health.LoneReportEvery, Nodes: m.names(), MTU: m.mtu})
}

// Describe implements prometheus.Collector.
func (m *measurements) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, out) }

// Collect implements prometheus.Collector.
func (m *measurements) Collect(out chan<- prometheus.Metric) {
	latest := m.latest()
	if latest == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s, names := &latest.Status, latest.names()
	state, _ := latest.judge(time.Since(s.Time))
	for _, one := range health.States() {
		gauge(m.state, truth(one == state), string(one))
	}
	if !latest.KeyCreated.IsZero() {
		gauge(m.key, float64(latest.KeyCreated.Unix()))
	}
	gauge(m.nodes, float64(len(names)))
	gauge(m.proven, float64(health.NodesReady(s, names)))
	for i, t := range s.AllTunnels() {
		peer := strconv.Itoa(i + 1)
		reached, _ := health.Tunnel(s, t)
		gauge(m.up, truth(reached == health.Healthy), peer)
		gauge(m.used, truth(t.Unused == ""), peer)
		gauge(m.loss, t.Loss, peer)
		out <- prometheus.MustNewConstMetric(m.received, prometheus.CounterValue, float64(t.RxBytes), peer)
		out <- prometheus.MustNewConstMetric(m.sent, prometheus.CounterValue, float64(t.TxBytes), peer)
		if !t.LastEcho.IsZero() {
			gauge(m.trip, time.Duration(t.RTT).Seconds(), peer)
		}
		if !t.Session.Since.IsZero() {
			gauge(m.handshake, float64(t.Session.Since.UnixMilli())/1000, peer)
		}
		if t.Path.MTU > 0 {
			gauge(m.pathMTU, float64(t.Path.MTU), peer)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
