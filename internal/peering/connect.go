package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// Connect creates, completes or updates the peering of two clusters, and returns when it is verified: packets were seen
// both ways. Nodes that were not verified in time are listed in the result. If no node of a cluster was verified, or
// AllNodes is set, that is an error. Without Update, Connect does not change an existing configuration; differences are
// a *DifferenceError. If Connect fails, it rolls back what this run created, unless Keep is set.
func Connect(ctx context.Context, o ConnectOptions, r progress.Reporter) (Connection, error) {
	connect := func(ctx context.Context) (Connection, error) { return newConnector(o, r).connect(ctx) }
	return plan.Locked(ctx, r, connect, &o.Local.Cluster, &o.Remote.Cluster)
}

func (c *connector) connect(ctx context.Context) (Connection, error) {
	start := time.Now()
	err := c.run(ctx)
	if c.turn != nil { // others do not wait for a rollback
		c.turn.end()
	}
	if err != nil {
		c.rollBack(ctx, err)
		return Connection{}, err
	}
	changes := append(c.local.changes, c.remote.changes...)
	return Connection{
		Local: c.local.result(), Remote: c.remote.result(),
		MTU: c.local.written.MTU, Hops: c.hops(),
		Stages: c.stages.Times, Took: seconds.Duration(time.Since(start)), Changed: len(changes) > 0, Objects: changes,
	}, nil
}

// PlanConnect returns the changes that Connect would make before it verifies the path. It changes nothing.
func PlanConnect(ctx context.Context, o ConnectOptions, r progress.Reporter) (plan.Plan, error) {
	c := newConnector(o, progress.Planning(r))
	c.planning = true
	err := c.run(ctx)
	return c.plan, err
}

// connector is a running connect.
type connector struct {
	options       ConnectOptions
	stages        progress.Stages
	reporter      progress.Reporter
	local, remote *member
	link          Link // nil: both clusters are members of this run
	planning      bool // stop after the plan
	plan          plan.Plan
	rendering     bool // the result is the objects, with keys
	writing       bool // a failure may require a rollback
	renewed       bool // records have got new keys of the peer
	turn          *turn
}

func newConnector(o ConnectOptions, r progress.Reporter) *connector {
	replacing := make(chan struct{}, 1)
	part := func(side Side, initial records.Role, serves *bool) *member {
		m := &member{site: newSite(side, o.Installation, r), replacing: replacing, wanted: desired.Wanted{Serves: serves, Settings: o.GatewaySettings, Initial: initial, Gateways: side.Gateways}}
		m.connecting = true
		return m
	}
	c := &connector{options: o, stages: progress.Stages{Reporter: r}, reporter: r}
	remoteServes := o.LocalServes
	if o.LocalServes != nil {
		remoteServes = new(!*o.LocalServes)
	}
	c.local, c.remote = part(o.Local, records.Client, o.LocalServes), part(o.Remote, records.Server, remoteServes)
	return c
}

// members returns the members of the run, the local one first.
func (c *connector) members() []*member {
	if c.link != nil {
		return []*member{c.local}
	}
	return []*member{c.local, c.remote}
}

// both runs a step for the two members in parallel. It returns the errors of both, because one may be the cause of the
// other.
func (c *connector) both(ctx context.Context, step func(*member, context.Context) error) error {
	var errs [2]error
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range c.members() {
		group.Go(func() error {
			errs[i] = step(m, ctx)
			return errs[i]
		})
	}
	first := group.Wait()
	// Cancellation because of the other member's error adds no information.
	for _, err := range errs {
		if err != nil && !errors.Is(err, first) && !errors.Is(err, context.Canceled) {
			return errors.Join(first, err)
		}
	}
	return first
}

// run runs the stages. The time limit depends on the size of the clusters, which is known after discovery.
func (c *connector) run(ctx context.Context) error {
	start := time.Now()
	early, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(c.options.Timeout, 0))
	defer cancel()
	err := c.stages.Run(early, progress.Step{Stage: progress.StageReach, Do: c.reach}, progress.Step{Stage: progress.StageDiscover, Do: c.discover})
	if err != nil {
		return err
	}
	nodes := 0
	for _, m := range c.members() {
		nodes = max(nodes, len(m.discovery.Nodes))
	}
	rest, cancel := progress.WithinOf(ctx, start, progress.TimeLimit(c.options.Timeout, nodes))
	defer cancel()
	if err := c.stages.Run(rest, progress.Step{Stage: progress.StageCompare, Do: c.compare}); err != nil || c.planning {
		return err
	}
	if c.options.Timeout == 0 && c.replacesOnly() {
		rest, cancel = progress.WithinOf(ctx, start, progress.TimeLimit(0, nodes)+handOverTime)
		defer cancel()
	}
	return c.stages.Run(rest,
		progress.Step{Stage: progress.StageInstall, Do: c.install},
		progress.Step{Stage: progress.StageNodes, Hint: "what the node helpers say: kubectl -n " + c.local.cluster.Namespace + " logs daemonset/" + records.NodeName, Do: c.awaitNodes},
		progress.Step{Stage: progress.StageGateway, Do: c.handOver},
		progress.Step{Stage: progress.StageTunnel, Do: c.configure},
		progress.Step{Stage: progress.StageProof, Hint: verifyHint, Do: c.verify})
}

// inOrder runs steps until one fails, without reporting them.
func inOrder(ctx context.Context, steps ...func(context.Context) (string, error)) error {
	for _, do := range steps {
		if _, err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *connector) reach(ctx context.Context) (string, error) {
	if err := c.both(ctx, (*member).reach); err != nil {
		return "", err
	}
	for _, m := range c.members() {
		var err error
		if m.seal, err = newSeal(); err != nil {
			return "", err
		}
	}
	if c.link == nil && c.local.id == c.remote.id {
		return "", progress.SameCluster(c.local.cluster.Context, c.remote.cluster.Context)
	}
	return c.describe(", ", func(m *member) string { return m.cluster.Context }), nil
}

// discover reads both clusters and decides, on copies of their registries, everything that can be decided before the
// first write.
func (c *connector) discover(ctx context.Context) (string, error) {
	if err := c.both(ctx, (*member).discover); err != nil {
		return "", err
	}
	// Each decision needs what the peer offers after the one before: who it is and its ranges, its other name, its
	// record, its settings and number of gateways.
	for _, decide := range []func(*member) error{(*member).avoidPeersName, (*member).resolvePeering, (*member).choose, (*member).agree} {
		if err := c.exchange(ctx); err != nil {
			return "", err
		}
		for _, m := range c.members() {
			if err := decide(m); err != nil {
				return "", err
			}
		}
	}
	for _, m := range c.members() {
		if err := m.checkConflicts(m.enforcesPreflight()); err != nil {
			return "", err
		}
		// This uses the reports that exist already. The warning for a member without enforced checks follows when all
		// nodes have reported.
		if m.enforcesPreflight() {
			if err := m.checkForward(true); err != nil {
				return "", err
			}
		}
	}
	err := c.inTurn(ctx, (*member).readGateways)
	return c.describe("; ", (*member).summary), err
}

// compare rejects changes to an existing configuration without the user's consent.
func (c *connector) compare(ctx context.Context) (string, error) {
	d := c.dry((*kube.Cluster).DryRun)
	var err error
	if c.plan, err = plan.Of(ctx, d.applyAll(ctx), d.clusters()...); err != nil {
		return "", err
	}
	for _, m := range c.members() {
		m.reportPublicCIDRs()
		if c.planning && m.have == nil {
			m.reportUndetected()
		}
	}
	if c.planning && c.replacesOnly() {
		c.reporter.Note("second gateways carry packets while the only ones are replaced, if nodes have room for them")
	}
	return c.plan.DecideDifferences(c.options.Update || c.planning)
}

// install creates both installations.
func (c *connector) install(ctx context.Context) (string, error) {
	c.writing = true
	// The locks are in the namespaces. The first write to either cluster takes both locks, so both namespaces must
	// exist before it.
	if err := c.both(ctx, (*member).makeNamespace); err != nil {
		return "", err
	}
	for _, m := range c.members() {
		go m.nodes.watch(ctx, m.cluster)
	}
	return "namespace " + c.local.cluster.Namespace, c.both(ctx, (*member).install)
}

// awaitNodes waits for the nodes of both clusters. It rejects nodes that cannot carry the peering, as long as the
// peering does not exist.
func (c *connector) awaitNodes(ctx context.Context) (string, error) {
	err := c.both(ctx, func(m *member, ctx context.Context) error {
		if err := m.awaitNodes(ctx); err != nil {
			return err
		}
		if err := m.checkForward(m.enforcesPreflight()); err != nil {
			return err
		}
		if m.settings.Plain() {
			return nil
		}
		return desired.CheckImplementation(m.readyReports(), *m.settings.Complete().Implementation)
	})
	return c.describe("; ", (*member).nodesSummary), err
}

// prepare creates keys, gateways and reservations, which depend on the other cluster's ranges.
func (c *connector) prepare(ctx context.Context) (string, error) {
	if err := c.agreeOnKeys(ctx); err != nil {
		return "", err
	}
	// Keys that an interrupted rotation has not announced: the peer must accept them before other gateways are
	// replaced.
	if err := c.announce(ctx); err != nil {
		return "", err
	}
	if err := c.reserveInTurn(ctx); err != nil {
		return "", err
	}
	err := c.both(ctx, (*member).prepare)
	if slices.ContainsFunc(c.members(), func(m *member) bool { return m.unannounced }) && c.link == nil {
		err = errors.Join(err, c.exchange(ctx), c.announce(ctx))
	}
	for _, m := range c.members() {
		if err == nil && m.have == nil {
			m.reportRemapped()
		}
	}
	return c.describe("; ", (*member).mappingSummary), err
}

// announce writes the new keys of each member's gateways into the other one's record.
func (c *connector) announce(ctx context.Context) error {
	err := c.both(ctx, func(m *member, ctx context.Context) error { return m.writePeerKeys(ctx, m.peer) })
	c.renewed = c.renewed || slices.ContainsFunc(c.members(), func(m *member) bool {
		return m.have != nil && !inventory.Same(*m.have, *m.written)
	})
	return err
}

// mappingSummary describes the remapping of the peer's pod CIDRs in this cluster.
func (m *member) mappingSummary() string {
	text := "pods of " + m.peer.Cluster.Name
	for _, mapping := range m.addresses.Pods {
		if mapping.Identity() {
			text += fmt.Sprintf(" %s", mapping.Real)
		} else {
			text += fmt.Sprintf(" %s as %s", mapping.Real, mapping.Seen)
		}
	}
	return text + " in " + m.name
}

// configure writes the peering's records: the server's immediately, the client's when the server's endpoint is known.
// Before that, gateways that the records no longer contain are removed.
func (c *connector) configure(ctx context.Context) (string, error) {
	// Normally this changes nothing. But a command that repairs reservations may have released these meanwhile, as
	// reservations without a record look like orphans.
	if err := c.inTurn(ctx, (*member).reserve); err != nil {
		return "", err
	}
	if err := c.drainGateways(ctx); err != nil {
		return "", err
	}
	if err := c.inTurn(ctx, only(records.Server, (*member).serve)); err != nil {
		return "", err
	}
	err := c.both(ctx, only(records.Client, func(m *member, ctx context.Context) error {
		if err := m.half().CheckPublic(); err != nil {
			return err
		}
		return m.write(ctx, m.half().Record())
	}))
	if err != nil {
		return "", err
	}
	return c.members()[0].tunnelSummary(), nil
}

// serve writes the record of the server's cluster, and waits for the endpoints of its tunnels.
func (m *member) serve(ctx context.Context) error {
	half := m.half()
	if err := half.CheckPublic(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.write(ctx, half.Record()) })
	group.Go(func() error { return m.awaitEndpoints(ctx, half) })
	return group.Wait()
}

// tunnelSummary describes where the server listens.
func (m *member) tunnelSummary() string {
	server, gateways := m.name, m.offer().Gateways
	if m.role == records.Client {
		server, gateways = m.peer.Cluster.Name, m.peer.Gateways
	}
	var all, where []string
	for _, g := range gateways {
		all = append(all, slices.Concat(g.Endpoints...)...)
	}
	if len(all) > 0 {
		where = append(where, desired.EndpointSummary(all))
	}
	if m.settings.CarriesWebSocket() {
		where = append(where, strings.Join(gateways[0].WebSocket, ", "))
	}
	return fmt.Sprintf("%s listens at %s, MTU %d", server, strings.Join(where, "; "), m.written.MTU)
}

// describe joins the descriptions of the members.
func (c *connector) describe(separator string, of func(*member) string) string {
	var all []string
	for _, m := range c.members() {
		all = append(all, of(m))
	}
	return strings.Join(all, separator)
}

// clusters returns those of the members.
func (c *connector) clusters() (all []*kube.Cluster) {
	for _, m := range c.members() {
		all = append(all, m.cluster)
	}
	return all
}

// hops returns the hops of the peering, with nodes of the members.
func (c *connector) hops() []desired.Hop {
	all := desired.Hops(c.local.offer(), c.local.peer)
	for i, m := range c.members() { // the links of both clusters come first, then the paths to their gateways
		all[i].Node, all[i+2].Node = m.nodeOfMTU(), m.sizes.Node
	}
	return all
}

// changed reports whether the run has changed anything.
func (c *connector) changed() bool {
	return slices.ContainsFunc(c.members(), func(m *member) bool { return len(m.changes) > 0 })
}
