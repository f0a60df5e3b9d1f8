//go:build linux

package gateway

import (
	"maps"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// measurements exports the latest report of a gateway, which it makes twice a second, as metrics.
type measurements struct {
	gateway records.GatewayID
	latest  func() *report // nil: none yet
}

// names returns the names of the nodes that have reported.
func (r report) names() (names []string) {
	for _, n := range r.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// judge returns the state of the peering from a report of that age, as its gateway observes it.
func (r report) judge(age time.Duration) (health.State, string) {
	return health.Judge(health.Observation{Status: &r.Status, Age: age, Every: health.LoneReportEvery, Nodes: r.names(), MTU: r.mtu})
}

// Describe implements prometheus.Collector. Metrics are described when they are sent.
func (m *measurements) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *measurements) Collect(out chan<- prometheus.Metric) {
	latest := m.latest()
	if latest == nil {
		return
	}
	gateway := series{out, prometheus.Labels{"peering": m.gateway.Peering, "gateway": strconv.Itoa(m.gateway.Number)}}
	s, names := &latest.Status, latest.names()
	state, _ := latest.judge(time.Since(s.Time))
	for _, one := range health.States() {
		gateway.with("state", string(one)).gauge("gateway_state", "State of the peering as this gateway sees it: 1 for the state that it has, 0 for all others.", truth(one == state))
	}
	if !latest.KeyCreated.IsZero() {
		gateway.gauge("gateway_key_created_timestamp_seconds", "Unix time at which the key pair of the gateway was made; absent if it is not known.", float64(latest.KeyCreated.Unix()))
	}
	gateway.gauge("gateway_nodes", "Nodes of this cluster that have reported.", float64(len(names)))
	gateway.gauge("gateway_nodes_verified", "Nodes that serve the peering, and whose full-size packets nodes of the peer have answered within four seconds.", float64(health.NodesReady(s, names)))
	for i, t := range s.AllTunnels() {
		tunnel := gateway.with("peer_gateway", strconv.Itoa(i+1))
		reached, _ := health.Tunnel(s, t)
		tunnel.gauge("tunnel_up", "1 if the peer's gateway has answered an echo within three seconds, else 0.", truth(reached == health.Healthy))
		tunnel.gauge("tunnel_used", "1 if the gateway sends packets of pods by this tunnel, 0 if it uses others.", truth(t.Unused == ""))
		tunnel.gauge("tunnel_carried", "1 while WebSocket carries WireGuard's packets, 0 while UDP does.", truth(t.Transport == records.WebSocket))
		tunnel.gauge("tunnel_encrypted", "1 if the tunnel is encrypted, 0 if the user has chosen that it is not.", truth(s.Implementation != records.Unencrypted))
		tunnel.gauge("tunnel_loss_ratio", "Share of echoes between the gateways without an answer, 0 to 1, over ten seconds.", t.Loss)
		tunnel.send(prometheus.CounterValue, "tunnel_received_bytes_total", "Bytes received by WireGuard.", float64(t.RxBytes))
		tunnel.send(prometheus.CounterValue, "tunnel_transmitted_bytes_total", "Bytes sent by WireGuard.", float64(t.TxBytes))
		if !t.LastEcho.IsZero() {
			tunnel.gauge("tunnel_round_trip_seconds", "Median round trip of the last echoes between the gateways.", time.Duration(t.RTT).Seconds())
		}
		if !t.Session.Since.IsZero() {
			tunnel.gauge("tunnel_last_handshake_timestamp_seconds", "Unix time of the last WireGuard handshake; absent before the first.", float64(t.Session.Since.UnixMilli())/1000)
		}
		if t.Path.MTU > 0 {
			tunnel.gauge("tunnel_path_mtu_bytes", "Path MTU between the gateways, outside the tunnel; absent while it is not known.", float64(t.Path.MTU))
		}
	}
}

// series sends metrics with the same labels.
type series struct {
	out    chan<- prometheus.Metric
	labels prometheus.Labels
}

// with returns the series with one more label.
func (s series) with(label, value string) series {
	s.labels = maps.Clone(s.labels)
	s.labels[label] = value
	return s
}

func (s series) gauge(name, help string, value float64) {
	s.send(prometheus.GaugeValue, name, help, value)
}

func (s series) send(kind prometheus.ValueType, name, help string, value float64) {
	s.out <- prometheus.MustNewConstMetric(prometheus.NewDesc("liqonet_"+name, help, nil, s.labels), kind, value)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
