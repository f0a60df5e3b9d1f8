package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// verify waits until both members report that packets cross: those of the tunnel, and full-size ones of every Ready
// node. The full size is measured first.
func (c *connector) verify(ctx context.Context) (string, error) {
	if err := c.measure(ctx); err != nil {
		return "", err
	}
	if err := c.both(ctx, (*member).verify); err != nil {
		return "", err
	}
	err := c.both(ctx, (*member).releaseGateways)
	if err == nil {
		err = c.both(ctx, (*member).listUnverified)
	}
	return fmt.Sprintf("%s; MTU %d", c.describe("; ", (*member).verificationSummary), c.members()[0].written.MTU), err
}

// verify waits until each gateway reports a healthy peering. After a part of the time limit, one node of the cluster
// whose packets cross is sufficient for each.
func (m *member) verify(ctx context.Context) error {
	defer m.nodes.limitWait(ctx, mostOfTime)()
	return m.cluster.FailWhen(ctx, templates.NodePods(), m.nodes.recordProblems, func(ctx context.Context) (err error) {
		m.verifications, err = forEach(ctx, m.gatewayIDs(), m.verifyGateway)
		return err
	})
}

// forEach calls do for gateways in parallel, until one call fails. The results are in the order of the gateways.
func forEach[T any](ctx context.Context, ids []records.GatewayID, do func(context.Context, records.GatewayID) (T, error)) ([]T, error) {
	all := make([]T, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			all[i], err = do(ctx, id)
			return err
		})
	}
	return all, group.Wait()
}

// verifyGateway waits for the status of one gateway. After a change of an existing peering, only a status whose echoes
// are all newer than the change is sufficient.
func (m *member) verifyGateway(ctx context.Context, id records.GatewayID) (verification, error) {
	changed := m.have != nil && len(m.changes) > 0
	w := verification{nodes: m.nodes, renewed: changed}
	if changed {
		err := m.cluster.FailFast(ctx, inventory.GatewaySelector(id), func(ctx context.Context) error {
			return m.cluster.WaitDeployment(ctx, id.Name())
		})
		if err != nil {
			return w, err
		}
	}
	what := fmt.Sprintf("packets to cross from cluster %q", m.cluster.Context)
	if m.gatewayCount() > 1 {
		what += fmt.Sprintf(" by gateway %d", id.Number)
	}
	err := inventory.AwaitStatus(ctx, m.cluster, id, what, func(s *records.Status) string { return w.check(s, time.Now()) })
	return w, m.silence(err, &w.last)
}

// verifyHint is the hint for packets that do not cross.
const verifyHint = "see where packets get lost: liqoctl network status -o wide (keep what was made with --no-rollback)"

// silence adds a hint to the error of a wait for packets: how to go without UDP, if no packet has arrived by the last
// report of a gateway (nil: none), and the server has no address for WebSocket.
func (m *member) silence(err error, last *records.Status) error {
	if !errors.Is(err, context.DeadlineExceeded) || last == nil || last.Time.IsZero() || *m.settings.Complete().Transport != records.AutoTransport || m.settings.CarriesWebSocket() {
		return err
	}
	for _, t := range last.AllTunnels() {
		if !t.Session.Since.IsZero() || !t.LastEcho.IsZero() {
			return err
		}
	}
	return hint.With(err, "if UDP is blocked between the clusters, add "+records.WebSocketFlags+"; "+verifyHint)
}

// verificationSummary describes the verification of a member.
func (m *member) verificationSummary() string {
	by, of := "", ""
	if len(m.verifications) > 1 {
		by = fmt.Sprintf(" by each of %d gateways", len(m.verifications))
	}
	if len(m.unverified) > 0 {
		of = fmt.Sprintf(" of %d", len(m.nodes.allReady()))
	}
	last := &m.verifications[0].last
	return fmt.Sprintf("%s: round trip %s, %d%s nodes verified%s", m.name,
		time.Duration(last.RTT).Round(time.Microsecond), health.NodesReady(last, m.nodes.allReady()), of, by)
}

// listUnverified lists the Ready nodes that not all gateways have verified, each with the reason.
func (m *member) listUnverified(ctx context.Context) error {
	reasons := make(map[string]string)
	for _, w := range m.verifications {
		for _, name := range w.ready {
			if missing := w.missing(name); missing != "" {
				reasons[name] = missing
			}
		}
	}
	if len(reasons) > 0 {
		leases, err := inventory.Leases(ctx, m.cluster)
		if err == nil {
			err = m.updateReports(leases)
		}
		if err != nil {
			return err
		}
	}
	m.warnSkipped()
	m.unverified = nil
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		m.unverified = append(m.unverified, UnverifiedNode{name, cmp.Or(m.missingReason(name), reasons[name])})
	}
	return nil
}

// verification evaluates successive reports of a gateway.
type verification struct {
	nodes *roster
	// renewed means that only events after the first report are sufficient.
	renewed bool

	started bool
	first   time.Time // of the first report, by the gateway's clock; zero: it did not exist
	last    records.Status
	ready   []string // nodes that were Ready at the last check
}

// check returns what is missing for verification in a report; "": verified.
func (w *verification) check(s *records.Status, now time.Time) (missing string) {
	if !w.started {
		w.started = true
		if s != nil {
			w.first = s.Time
		}
	}
	w.ready = w.nodes.allReady()
	if s == nil {
		_, reason := health.Judge(health.Observation{Nodes: w.ready})
		return reason
	}
	w.last = *s
	crosses := func(name string) bool { return w.missing(name) == "" }
	o := health.Observation{Status: s, Nodes: w.nodes.required(crosses)}
	if !s.Time.After(w.first) { // else this run has seen a new report: it is fresh, independent of the gateway's clock
		o.Age = now.Sub(s.Time)
	}
	state, reason := health.Judge(o)
	switch {
	case state != health.Healthy:
		return reason
	case w.renewed && (!s.LastEcho.After(w.first) || len(slices.DeleteFunc(o.Nodes, crosses)) > 0):
		return noneSinceChange
	}
	return ""
}

// noneSinceChange is missing if all events in a report are older than the change.
const noneSinceChange = "no packets since the change yet"

// missing returns why packets of a node do not cross, by the last report; "" if they do.
func (w *verification) missing(name string) string {
	n := health.Node(&w.last, name)
	if fault := health.NodeFault(&w.last, name); fault != "" || !w.renewed || n.LastEcho.After(w.first) && n.LastProof.After(w.first) {
		return fault
	}
	return noneSinceChange
}
