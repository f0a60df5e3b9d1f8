package peering

import (
	"context"
	"fmt"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// prove waits until both ends report that packets cross: the tunnel's, and full-size ones of every Ready node. What
// the full size is, is measured before.
func (c *connector) prove(ctx context.Context) (string, error) {
	if err := c.measure(ctx); err != nil {
		return "", err
	}
	err := c.both(ctx, (*end).prove)
	return fmt.Sprintf("%s; %s; MTU %d", c.local.proven(), c.remote.proven(), c.local.written.MTU), err
}

// prove waits for a report that tells of a healthy peering. After a change of what stood before, only a report
// whose echoes are all younger than the change counts.
func (e *end) prove(ctx context.Context) error {
	ready := e.readyNodes()
	changed := e.have != nil && len(e.changes) > 0
	w := witness{nodes: ready, renewed: changed}
	if changed {
		err := e.cluster.FailFast(ctx, inventory.GatewaySelector(e.peering), func(ctx context.Context) error {
			return e.cluster.WaitDeployment(ctx, records.GatewayID{Peering: e.peering, Number: 1}.Name())
		})
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("packets to cross from cluster %q", e.cluster.Context)
	err := inventory.AwaitStatus(ctx, e.cluster, e.peering, what, func(s *records.Status) string { return w.look(s, time.Now()) })
	e.proof = w.last
	return err
}

// proven describes what an end has seen.
func (e *end) proven() string {
	return fmt.Sprintf("%s: round trip %s, %d nodes verified", e.name,
		time.Duration(e.proof.RTT).Round(time.Microsecond), health.NodesReady(&e.proof, e.readyNodes()))
}

// witness judges reports as they come in.
type witness struct {
	nodes []string
	// renewed says that only what happens after the first report counts.
	renewed bool

	looked bool
	first  time.Time // of the first report, by the gateway's clock; zero: there was none
	last   records.Status
}

// look returns what a report says to be missing; "" when it is the proof.
func (w *witness) look(s *records.Status, now time.Time) (missing string) {
	if !w.looked {
		w.looked = true
		if s != nil {
			w.first = s.Time
		}
	}
	if s == nil {
		_, reason := health.Judge(health.Observation{Nodes: w.nodes})
		return reason
	}
	w.last = *s
	o := health.Observation{Status: s, Nodes: w.nodes}
	if !s.Time.After(w.first) { // else it was seen to be written: it is fresh whatever the gateway's clock says
		o.Age = now.Sub(s.Time)
	}
	state, reason := health.Judge(o)
	switch {
	case state != health.Healthy:
		return reason
	case w.renewed && !youngerThan(s, w.nodes, w.first):
		return "no packets since the change yet"
	}
	return ""
}

// youngerThan reports whether all that a report tells of has happened after t.
func youngerThan(s *records.Status, nodes []string, t time.Time) bool {
	if !s.LastEcho.After(t) {
		return false
	}
	for _, name := range nodes {
		if n, _ := health.Node(s, name); !n.LastEcho.After(t) || !n.LastProof.After(t) {
			return false
		}
	}
	return true
}
