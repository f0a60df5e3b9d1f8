package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
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
	return plan.Locked(ctx, r, func(ctx context.Context) (Connection, error) { return connect(ctx, o, r) }, &o.Local.Cluster, &o.Remote.Cluster)
}

func connect(ctx context.Context, o ConnectOptions, r progress.Reporter) (Connection, error) {
	start := time.Now()
	c := newConnector(o, r)
	if err := c.run(ctx); err != nil {
		c.rollBack(ctx, err)
		return Connection{}, err
	}
	changes := append(c.local.changes, c.remote.changes...)
	return Connection{
		Local: c.local.result(), Remote: c.remote.result(),
		MTU: c.local.written.MTU, Hops: hops(c.local, c.remote),
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
	planning      bool // stop after the plan
	plan          plan.Plan
	rendering     bool // the result is the objects, with keys
	writing       bool // a failure may require a rollback
}

func newConnector(o ConnectOptions, r progress.Reporter) *connector {
	replacing := make(chan struct{}, 1)
	part := func(side Side) *member {
		m := &member{site: newSite(side, o.Installation, r), replacing: replacing}
		m.connecting, m.onePort = true, len(o.FirstPorts()) > 0
		return m
	}
	c := &connector{options: o, stages: progress.Stages{Reporter: r}, reporter: r}
	c.local, c.remote = part(o.Local), part(o.Remote)
	c.local.peer, c.remote.peer = c.remote, c.local
	return c
}

// members returns both members, the local one first.
func (c *connector) members() []*member { return []*member{c.local, c.remote} }

// server returns the member whose gateways are the WireGuard servers. The other one, the client, sends the first
// packets.
func (c *connector) server() *member {
	if c.local.role == records.Server {
		return c.local
	}
	return c.remote
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
	if first == nil {
		return nil
	}
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
	nodes := max(len(c.local.discovery.Nodes), len(c.remote.discovery.Nodes))
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
		progress.Step{Stage: progress.StageProof, Hint: "see where packets get lost: liqoctl network status -o wide (keep what was made with --keep)", Do: c.verify})
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
	if c.local.id == c.remote.id {
		return "", progress.SameCluster(c.local.cluster.Context, c.remote.cluster.Context)
	}
	return c.local.cluster.Context + ", " + c.remote.cluster.Context, nil
}

// discover reads both clusters and decides, on copies of their registries, everything that can be decided before the
// first write.
func (c *connector) discover(ctx context.Context) (string, error) {
	if err := c.both(ctx, (*member).discover); err != nil {
		return "", err
	}
	for _, m := range c.members() {
		if err := m.resolvePeering(); err != nil {
			return "", err
		}
	}
	if err := c.choose(); err != nil {
		return "", err
	}
	if err := c.checkPorts(); err != nil {
		return "", err
	}
	for _, m := range c.members() {
		if err := inventory.ExplainAddresses(m.cluster.Context, m.assign(m.observed.registry)); err != nil {
			return "", err
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
	err := c.both(ctx, (*member).readGateways)
	return c.local.summary() + "; " + c.remote.summary(), err
}

// compare rejects changes to an existing configuration without the user's consent.
func (c *connector) compare(ctx context.Context) (string, error) {
	d := c.dry((*kube.Cluster).DryRun)
	var err error
	if c.plan, err = plan.Of(ctx, d.applyAll(ctx), d.local.cluster, d.remote.cluster); err != nil {
		return "", err
	}
	var lines []string
	for i, m := range c.members() {
		lines = append(append(lines, c.plan.Clusters[i].Differences()...), m.unreserved...)
		m.reportPublicCIDRs()
		if c.planning && m.have == nil {
			m.reportUndetected()
		}
	}
	if c.planning && c.replacesOnly() {
		c.reporter.Note("second gateways carry packets while the only ones are replaced, if nodes have room for them")
	}
	return plan.DecideDifferences(lines, c.options.Update || c.planning)
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
		return checkImplementation(m.readyReports(), *m.settings.Complete().Implementation)
	})
	return c.local.nodesSummary() + "; " + c.remote.nodesSummary(), err
}

// prepare creates keys, gateways and reservations, which depend on the other cluster's ranges.
func (c *connector) prepare(ctx context.Context) (string, error) {
	if err := c.agreeOnKeys(ctx); err != nil {
		return "", err
	}
	err := c.both(ctx, (*member).prepare)
	for _, m := range c.members() {
		if err == nil && m.have == nil {
			m.reportRemapped()
		}
	}
	return c.local.mappingSummary() + "; " + c.remote.mappingSummary(), err
}

// mappingSummary describes the remapping of the peer's pod CIDRs in this cluster.
func (m *member) mappingSummary() string {
	text := "pods of " + m.peer.name
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
	if err := c.both(ctx, (*member).reserve); err != nil {
		return "", err
	}
	if err := c.drainGateways(ctx); err != nil {
		return "", err
	}
	server, client := c.server(), c.server().peer
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return server.write(inner, server.desiredRecord()) })
	group.Go(func() error { return client.awaitEndpoints(inner) })
	if err := group.Wait(); err != nil {
		return "", err
	}
	if err := client.write(ctx, client.desiredRecord()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s listens at %s, MTU %d", server.name, endpointSummary(client.written.Endpoints()), client.written.MTU), nil
}
