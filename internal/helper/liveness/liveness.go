// Package liveness serves the kubelet's probes of a helper, and its metrics.
package liveness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Probes answers the kubelet's probes: live while the loop runs; ready if the last pass reached the desired state, or
// once Serving is true.
type Probes struct {
	// Serving is set for a gateway, which is ready once it is true: if a damaged record made all gateways unready at
	// the same time, all could be evicted at the same time, regardless of their PodDisruptionBudget.
	Serving func() bool

	stuck time.Duration

	mu   sync.Mutex
	err  error
	last time.Time  // of the last pass; the zero value: the loop waits for the API server
	open []net.Conn // to the server, the oldest first
}

// New returns the answers for a loop that has not begun. Without a pass for the duration stuck, it is not live.
func New(stuck time.Duration) *Probes { return &Probes{err: errors.New("no pass yet"), stuck: stuck} }

// Begin marks the start of the loop.
func (h *Probes) Begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
}

// Set records the end of a pass; nil: it reached the desired state.
func (h *Probes) Set(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err, h.last = err, time.Now()
}

func (h *Probes) ready() error {
	if h.Serving != nil && h.Serving() {
		return nil
	}
	return h.Failed()
}

// Failed returns the error of the last pass.
func (h *Probes) Failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *Probes) live() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last.IsZero() && time.Since(h.last) > h.stuck {
		return errors.New("no pass since " + h.last.Format(time.RFC3339))
	}
	return nil
}

func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

// Limits of clients of probes and metrics: in a gateway, any pod of the cluster can connect. The kubelet and a scraper
// or two have one connection each.
const (
	connectionsMost = 32
	scrapesMost     = 2 // concurrent: each reads counters of the kernel
	requestTimeout  = 5 * time.Second
	answerTimeout   = 15 * time.Second // including the reading of counters
)

// Serve serves probes and metrics at an address until ctx ends.
func (h *Probes) Serve(ctx context.Context, address string, reg *prometheus.Registry) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return err
	}
	return h.serveAt(ctx, listener, reg)
}

func (h *Probes) serveAt(ctx context.Context, listener net.Listener, reg *prometheus.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", answer(h.ready))
	mux.Handle("GET /livez", answer(h.live))
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost}))
	server := &http.Server{
		Handler: mux, MaxHeaderBytes: 8 << 10,
		ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: requestTimeout,
		ConnState: h.count,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// count limits the open connections. A connection above the limit closes the oldest one: a client that holds many
// connections does not lock out others, as it would if no more were accepted.
func (h *Probes) count(c net.Conn, state http.ConnState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch state {
	case http.StateNew:
		h.open = append(h.open, c)
		if len(h.open) > connectionsMost {
			_ = h.open[0].Close() // its other end may be gone already
			h.open = h.open[1:]
		}
	case http.StateClosed:
		h.open = slices.DeleteFunc(h.open, func(other net.Conn) bool { return other == c })
	}
}
