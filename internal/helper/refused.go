//go:build linux

package helper

import (
	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/kernel"
)

// refused exports, at each scrape, the packets that liqonet's rules dropped and the messages that echo sockets ignored:
// signs of unauthorised senders.
type refused struct {
	dropped, ignored *prometheus.Desc
	sockets          func() map[string]*echo.Socket // open sockets, by purpose
}

// NewRefused returns the collector of these metrics.
func NewRefused(sockets func() map[string]*echo.Socket) prometheus.Collector {
	return &refused{
		dropped: prometheus.NewDesc("liqonet_dropped_packets_total",
			"Packets dropped by liqonet's rules in the kernel, by chain; resets when a rule is replaced.", []string{"chain"}, nil),
		ignored: prometheus.NewDesc("liqonet_echo_ignored_total",
			"Messages to an echo socket that were ignored, by socket and reason.", []string{"socket", "reason"}, nil),
		sockets: sockets,
	}
}

// Describe implements prometheus.Collector.
func (r *refused) Describe(out chan<- *prometheus.Desc) {
	out <- r.dropped
	out <- r.ignored
}

// Collect implements prometheus.Collector.
func (r *refused) Collect(out chan<- prometheus.Metric) {
	packets, err := kernel.Dropped()
	if err != nil {
		out <- prometheus.NewInvalidMetric(r.dropped, err)
	}
	for chain, n := range packets {
		out <- prometheus.MustNewConstMetric(r.dropped, prometheus.CounterValue, float64(n), chain)
	}
	for name, s := range r.sockets() {
		for reason, n := range s.Ignored() {
			out <- prometheus.MustNewConstMetric(r.ignored, prometheus.CounterValue, float64(n), name, string(reason))
		}
	}
}
