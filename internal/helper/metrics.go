//go:build linux

package helper

import "github.com/prometheus/client_golang/prometheus"

// metrics are a helper's counters.
type metrics struct {
	registry *prometheus.Registry
	passes   prometheus.Counter
	changes  prometheus.Counter
	drift    *prometheus.CounterVec
	ignored  *prometheus.CounterVec
	refused  prometheus.Gauge
	faults   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		passes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqonet_kernel_passes_total",
			Help: "Comparisons of the kernel with the wanted state.",
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqonet_kernel_changes_total",
			Help: "Comparisons that found a difference and changed the kernel, whatever the reason.",
		}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqonet_kernel_drift_total",
			Help: "Objects that others changed or removed and that were brought back, by kind.",
		}, []string{"kind"}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqonet_peer_values_ignored_total",
			Help: "Values in messages of the peer that were refused, by reason.",
		}, []string{"reason"}),
		faults: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "liqonet_records_refused",
			Help: "Records that this helper does not take as they are, by ConfigMap: damaged, or with what it must not do.",
		}, []string{"object"}),
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liqonet_node_reports_refused",
			Help: "Reports of nodes that a gateway refuses now: damaged, or of another node than the one that holds the Lease.",
		}),
	}
	m.registry.MustRegister(m.passes, m.changes, m.drift, m.ignored, m.refused, m.faults)
	return m
}
