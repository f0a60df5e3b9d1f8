//go:build linux

package node

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/time/rate"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
)

// witness is a node's observation of a gateway that may ask it to report: a gateway asks few of its nodes.
type witness struct {
	news       chan<- struct{} // triggers a report
	asked      bool
	lastAnswer time.Time // time of the gateway's last answer
	fault      string    // "": packets cross
}

// check updates the fault. asked is from the gateway's last message, proven the last answer of the peer's nodes.
func (w *witness) check(asked bool, proven time.Time) {
	fault := ""
	switch {
	case time.Since(w.lastAnswer) >= health.GatewaySilence:
		fault = "no answer from the gateway"
	case !proven.IsZero() && time.Since(proven) >= health.ProofSilence:
		fault = "no answer from nodes of the peer"
	}
	if asked != w.asked || fault != w.fault {
		w.asked, w.fault = asked, fault
		wakeup.Notify(w.news)
	}
}

// faults returns the faults of the gateways for which this node is a witness; "" if packets cross.
func (n *probes) faults() map[records.GatewayID]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all map[records.GatewayID]string // nil: no gateway asks
	for key, p := range n.paths {
		p.mu.Lock()
		if p.asked {
			if all == nil {
				all = map[records.GatewayID]string{}
			}
			all[key.id] = p.fault
		}
		p.mu.Unlock()
	}
	return all
}

// reportFaultChanges writes an event for each gateway that this node starts or stops missing.
func (l *loop) reportFaultChanges(before, faults map[records.GatewayID]string) {
	for id, fault := range faults {
		if did, known := before[id]; fault == did || !known && fault == "" {
			continue
		}
		l.events.Add("ConfigMap", id.StatusName(), fault == "", publish.GatewayLost, "node "+l.Name+": "+cmp.Or(fault, "packets cross"))
	}
}

// reportWitness passes this node's observations of gateways to the writer of its Lease, until ctx ends.
func (l *loop) reportWitness(ctx context.Context) {
	changes := rate.NewLimiter(publish.NewsRate, publish.NewsBurst) // a gateway can ask all nodes, and repeatedly
	var before map[records.GatewayID]string
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.probes.news:
		}
		if changes.Wait(ctx) != nil {
			return
		}
		faults := l.probes.faults()
		l.reportFaultChanges(before, faults)
		before = faults
		l.reports.Change(func(r *report) { r.node.Witness = faults })
	}
}
