package peering

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

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
	if err := c.both(ctx, (*end).prove); err != nil {
		return "", err
	}
	err := c.both(ctx, (*end).releaseGateways)
	return fmt.Sprintf("%s; %s; MTU %d", c.local.proven(), c.remote.proven(), c.local.written.MTU), err
}

// prove waits for a report of each gateway that tells of a healthy peering.
func (e *end) prove(ctx context.Context) error {
	ids := e.gatewayIDs()
	e.proof = make([]records.Status, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			e.proof[i], err = e.proveBy(ctx, id)
			return err
		})
	}
	return group.Wait()
}

// proveBy waits for the report of one gateway. After a change of what stood before, only a report whose echoes are all
// younger than the change counts.
func (e *end) proveBy(ctx context.Context, id records.GatewayID) (records.Status, error) {
	changed := e.have != nil && len(e.changes) > 0
	w := witness{nodes: e.readyNodes(), renewed: changed}
	if changed {
		err := e.cluster.FailFast(ctx, inventory.GatewaySelector(id), func(ctx context.Context) error {
			return e.cluster.WaitDeployment(ctx, id.Name())
		})
		if err != nil {
			return w.last, err
		}
	}
	what := fmt.Sprintf("packets to cross from cluster %q", e.cluster.Context)
	if e.count() > 1 {
		what += fmt.Sprintf(" by gateway %d", id.Number)
	}
	err := inventory.AwaitStatus(ctx, e.cluster, id, what, func(s *records.Status) string { return w.look(s, time.Now()) })
	return w.last, err
}

// proven describes what an end has seen.
func (e *end) proven() string {
	by := ""
	if len(e.proof) > 1 {
		by = fmt.Sprintf(" by each of %d gateways", len(e.proof))
	}
	return fmt.Sprintf("%s: round trip %s, %d nodes verified%s", e.name,
		time.Duration(e.proof[0].RTT).Round(time.Microsecond), health.NodesReady(&e.proof[0], e.readyNodes()), by)
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
