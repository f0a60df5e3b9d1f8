//go:build linux

package helper

import "github.com/prometheus/client_golang/prometheus"

// metrics are a helper's counters.
type metrics struct {
	registry    *prometheus.Registry
	corrections prometheus.Counter
	ignored     *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		corrections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqonet_kernel_corrections_total",
			Help: "Passes that found the kernel different from the wanted state and changed it.",
		}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqonet_peer_values_ignored_total",
			Help: "Values in messages of the peer that were refused, by reason.",
		}, []string{"reason"}),
	}
	m.registry.MustRegister(m.corrections, m.ignored)
	return m
}
