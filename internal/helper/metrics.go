//go:build linux

package helper

import "github.com/prometheus/client_golang/prometheus"

// Metrics are a helper's counters.
type Metrics struct {
	Registry *prometheus.Registry
	passes   prometheus.Counter
	duration prometheus.Histogram
	changes  prometheus.Counter
	drift    *prometheus.CounterVec
	Ignored  *prometheus.CounterVec
	Refused  prometheus.Gauge
	faults   *prometheus.GaugeVec
}

// NewMetrics returns the counters, in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		passes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqonet_kernel_passes_total",
			Help: "Reconcile passes: comparisons of the kernel with the desired state.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "liqonet_kernel_pass_duration_seconds",
			Help:    "Duration of reconcile passes that read the kernel.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8), // to 16 seconds
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqonet_kernel_changes_total",
			Help: "Reconcile passes that changed the kernel, for any reason.",
		}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqonet_kernel_drift_total",
			Help: "Kernel objects that were changed or removed from outside and restored, by kind.",
		}, []string{"kind"}),
		Ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqonet_peer_values_ignored_total",
			Help: "Values in messages of the peer that were rejected, by reason.",
		}, []string{"reason"}),
		faults: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "liqonet_records_refused",
			Help: "Records that this helper rejects, by ConfigMap: damaged, or with values that are not allowed.",
		}, []string{"object"}),
		Refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liqonet_node_reports_refused",
			Help: "Node reports that the gateway rejects: damaged, or of another node than the holder of the Lease.",
		}),
	}
	m.Registry.MustRegister(m.passes, m.duration, m.changes, m.drift, m.Ignored, m.Refused, m.faults)
	return m
}
