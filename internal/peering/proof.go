package peering

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
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
	if err == nil {
		err = c.both(ctx, (*end).nameUnverified)
	}
	return fmt.Sprintf("%s; %s; MTU %d", c.local.proven(), c.remote.proven(), c.local.written.MTU), err
}

// prove waits for a report of each gateway that tells of a healthy peering. When it gets late, one node of the cluster
// whose packets cross is enough for each.
func (e *end) prove(ctx context.Context) error {
	defer e.nodes.patience(ctx, mostOfTime)()
	ids := e.gatewayIDs()
	e.proof = make([]witness, len(ids))
	return e.cluster.FailWhen(ctx, templates.NodePods(), e.nodes.judge, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for i, id := range ids {
			group.Go(func() (err error) {
				e.proof[i], err = e.proveBy(ctx, id)
				return err
			})
		}
		return group.Wait()
	})
}

// proveBy waits for the report of one gateway. After a change of what stood before, only a report whose echoes are all
// younger than the change counts.
func (e *end) proveBy(ctx context.Context, id records.GatewayID) (witness, error) {
	changed := e.have != nil && len(e.changes) > 0
	w := witness{nodes: e.nodes, renewed: changed}
	if changed {
		err := e.cluster.FailFast(ctx, inventory.GatewaySelector(id), func(ctx context.Context) error {
			return e.cluster.WaitDeployment(ctx, id.Name())
		})
		if err != nil {
			return w, err
		}
	}
	what := fmt.Sprintf("packets to cross from cluster %q", e.cluster.Context)
	if e.count() > 1 {
		what += fmt.Sprintf(" by gateway %d", id.Number)
	}
	err := inventory.AwaitStatus(ctx, e.cluster, id, what, func(s *records.Status) string { return w.look(s, time.Now()) })
	return w, err
}

// proven describes what an end has seen.
func (e *end) proven() string {
	by, of := "", ""
	if len(e.proof) > 1 {
		by = fmt.Sprintf(" by each of %d gateways", len(e.proof))
	}
	if len(e.unverified) > 0 {
		of = fmt.Sprintf(" of %d", len(e.nodes.all()))
	}
	last := &e.proof[0].last
	return fmt.Sprintf("%s: round trip %s, %d%s nodes verified%s", e.name,
		time.Duration(last.RTT).Round(time.Microsecond), health.NodesReady(last, e.nodes.all()), of, by)
}

// nameUnverified names the Ready nodes of which not all gateways have seen packets cross, each with the reason.
func (e *end) nameUnverified(ctx context.Context) error {
	reasons := make(map[string]string)
	for _, w := range e.proof {
		for _, name := range w.ready {
			if missing := w.missing(name); missing != "" {
				reasons[name] = missing
			}
		}
	}
	if len(reasons) > 0 {
		leases, err := inventory.Leases(ctx, e.cluster)
		if err == nil {
			err = e.takeReports(leases)
		}
		if err != nil {
			return err
		}
	}
	e.warnNotReady()
	e.unverified = nil
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		e.unverified = append(e.unverified, UnverifiedNode{name, cmp.Or(e.absent(name), reasons[name])})
	}
	return nil
}

// witness judges reports of a gateway as they come in.
type witness struct {
	nodes *roster
	// renewed says that only what happens after the first report counts.
	renewed bool

	looked bool
	first  time.Time // of the first report, by the gateway's clock; zero: there was none
	last   records.Status
	ready  []string // the nodes that were Ready at the last look
}

// look returns what a report says to be missing; "" when it is the proof.
func (w *witness) look(s *records.Status, now time.Time) (missing string) {
	if !w.looked {
		w.looked = true
		if s != nil {
			w.first = s.Time
		}
	}
	w.ready = w.nodes.all()
	if s == nil {
		_, reason := health.Judge(health.Observation{Nodes: w.ready})
		return reason
	}
	w.last = *s
	crosses := func(name string) bool { return w.missing(name) == "" }
	o := health.Observation{Status: s, Nodes: w.nodes.demanded(crosses)}
	if !s.Time.After(w.first) { // else it was seen to be written: it is fresh whatever the gateway's clock says
		o.Age = now.Sub(s.Time)
	}
	state, reason := health.Judge(o)
	switch {
	case state != health.Healthy:
		return reason
	case w.renewed && (!s.LastEcho.After(w.first) || len(slices.DeleteFunc(o.Nodes, crosses)) > 0):
		return noneSince
	}
	return ""
}

// noneSince is what is missing while all that a report tells of has happened before the change.
const noneSince = "no packets since the change yet"

// missing returns why the packets of a node do not cross, by the last report; "" if they do.
func (w *witness) missing(name string) string {
	n, _ := health.Node(&w.last, name)
	if fault := health.NodeFault(&w.last, name); fault != "" || !w.renewed || n.LastEcho.After(w.first) && n.LastProof.After(w.first) {
		return fault
	}
	return noneSince
}
