//go:build linux

package helper

import (
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// nodeWitness is what is written to a Lease.
type nodeWitness struct {
	lease string
	text  string // of a Witness record; "": no gateway asks
}

// witnessed is what this node reports of gateways. It is not ok before the node has an address.
func (n *nodeProbes) witnessed() (w nodeWitness, ok bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.internal.IsValid() {
		return w, false, nil
	}
	w.lease = records.AddressLeaseName(n.internal)
	r := records.Witness{Version: records.SchemaVersion, Peerings: map[string]string{}}
	for name, p := range n.peers {
		p.mu.Lock()
		if p.asked {
			r.Peerings[name] = p.fault
		}
		p.mu.Unlock()
	}
	if len(r.Peerings) > 0 {
		w.text, err = records.Encode(r)
	}
	return w, err == nil, err
}

// reportWitness hands what this node sees of gateways to its writer, until ctx ends.
func (l *nodeLoop) reportWitness(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.probes.news:
		}
		switch w, ok, err := l.probes.witnessed(); {
		case err != nil:
			l.Log.Warn("report of gateways", "error", err)
		case ok:
			l.witnesses.set(w)
		}
	}
}

// newWitnesses sets up the writer. It writes for the first time even where there is nothing to report: an earlier process may
// have left something.
func (l *nodeLoop) newWitnesses() {
	l.witnesses = newReporter(l.Log, never, func(ctx context.Context, w nodeWitness) (string, error) {
		var text any // null removes the annotation
		if w.text != "" {
			text = w.text
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{records.AnnotationWitness: text}}})
		if err != nil {
			return "", err
		}
		_, err = l.Client.CoordinationV1().Leases(l.Namespace).Patch(ctx, w.lease, types.MergePatchType, patch, metav1.PatchOptions{})
		return w.text, err
	})
	l.witnesses.kept = func(w nodeWitness, text string) bool {
		lease := named[*coordinationv1.Lease](l.leases, l.Namespace, w.lease)
		return lease == nil || lease.Annotations[records.AnnotationWitness] == text
	}
}
