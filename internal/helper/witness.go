//go:build linux

package helper

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// witness is what a node sees of a gateway that may ask it to report: a gateway asks few of its nodes.
type witness struct {
	news  chan<- struct{} // calls for a report
	asked bool
	heard time.Time // the gateway's last answer
	fault string    // "": packets cross
}

// look brings the fault up to date. asked is what the gateway said last, proven the last answer of the peer's nodes.
func (w *witness) look(asked bool, proven time.Time) {
	fault := ""
	switch {
	case time.Since(w.heard) >= health.GatewaySilence:
		fault = "no answer from the gateway"
	case !proven.IsZero() && time.Since(proven) >= health.ProofSilence:
		fault = "no answer from nodes of the peer"
	}
	if asked != w.asked || fault != w.fault {
		w.asked, w.fault = asked, fault
		notify(w.news)
	}
}

// witnessed is what this node reports of gateways, a Witness record as text; "": no gateway asks.
func (n *nodeProbes) witnessed() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := records.Witness{Version: records.SchemaVersion, Gateways: map[records.GatewayID]string{}}
	for key, p := range n.paths {
		p.mu.Lock()
		if p.asked {
			r.Gateways[key.id] = p.fault
		}
		p.mu.Unlock()
	}
	if len(r.Gateways) == 0 {
		return "", nil
	}
	return records.Encode(r)
}

// reportWitness hands what this node sees of gateways to the writer of its Lease, until ctx ends.
func (l *nodeLoop) reportWitness(ctx context.Context) {
	changes := rate.NewLimiter(locationRate, newsBurst) // a gateway can ask all nodes, and again and again
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.probes.news:
		}
		if changes.Wait(ctx) != nil {
			return
		}
		text, err := l.probes.witnessed()
		if err != nil {
			l.Log.Warn("report of gateways", "error", err)
			continue
		}
		l.reports.change(func(r *nodeReport) { r.witness = text })
	}
}
