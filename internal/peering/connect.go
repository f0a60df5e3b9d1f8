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
)

// Connect joins two clusters, or completes or updates what joins them, and returns when packets were seen to
// cross both ways. Nodes of which that was not seen in time are named in the result, unless it is none of a cluster's,
// or AllNodes is set: that is a failure. Without Update it changes nothing of a connection that stands; differences are
// a *DifferenceError. A failure removes what this run made, unless Keep says otherwise.
func Connect(ctx context.Context, o ConnectOptions, r progress.Reporter) (Connection, error) {
	return plan.Locked(ctx, r, func(ctx context.Context) (Connection, error) { return connect(ctx, o, r) }, &o.Local.Cluster, &o.Remote.Cluster)
}

func connect(ctx context.Context, o ConnectOptions, r progress.Reporter) (Connection, error) {
	start := time.Now()
	c := newConnector(o, r)
	if err := c.run(ctx); err != nil {
		c.fail(ctx, err)
		return Connection{}, err
	}
	changes := append(c.local.changes, c.remote.changes...)
	return Connection{
		Local: c.local.result(), Remote: c.remote.result(),
		MTU: c.local.written.MTU, Hops: hops(c.local, c.remote),
		Stages: c.stages.Times, Took: time.Since(start), Changed: len(changes) > 0, Objects: changes,
	}, nil
}

// PlanConnect returns what Connect would change before it verifies the path, and changes nothing.
func PlanConnect(ctx context.Context, o ConnectOptions, r progress.Reporter) (plan.Plan, error) {
	c := newConnector(o, progress.Planning(r))
	c.planning = true
	err := c.run(ctx)
	return c.plan, err
}

// connector is a connect on its way.
type connector struct {
	options       ConnectOptions
	stages        progress.Stages
	reporter      progress.Reporter
	local, remote *end
	planning      bool // the plan is all that is wanted
	plan          plan.Plan
	rendering     bool // objects are wanted, with keys
	writing       bool // a failure may leave something to roll back
}

func newConnector(o ConnectOptions, r progress.Reporter) *connector {
	turn := make(chan struct{}, 1)
	part := func(side Side) *end {
		e := &end{site: newSite(side, o.Installation, r), turn: turn}
		e.connecting, e.onePort = true, o.Service.Port != 0 || o.Service.NodePort != 0 || given(o.ClientPort, 0) != 0
		return e
	}
	c := &connector{options: o, stages: progress.Stages{Reporter: r}, reporter: r}
	c.local, c.remote = part(o.Local), part(o.Remote)
	c.local.peer, c.remote.peer = c.remote, c.local
	return c
}

// ends are both, the local one first.
func (c *connector) ends() []*end { return []*end{c.local, c.remote} }

// server is the end that the other one, the client, sends its packets to first.
func (c *connector) server() *end {
	if c.local.role == records.Server {
		return c.local
	}
	return c.remote
}

// both runs a step for the two ends at once. The errors of both are told: one of them may be the other's cause.
func (c *connector) both(ctx context.Context, step func(*end, context.Context) error) error {
	var errs [2]error
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range c.ends() {
		group.Go(func() error {
			errs[i] = step(e, ctx)
			return errs[i]
		})
	}
	first := group.Wait()
	if first == nil {
		return nil
	}
	// What only ended because the other side had failed is no news.
	for _, err := range errs {
		if err != nil && !errors.Is(err, first) && !errors.Is(err, context.Canceled) {
			return errors.Join(first, err)
		}
	}
	return first
}

// run runs the stages. How much time they have is known once the size of the clusters is.
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
		progress.Step{Stage: progress.StageNodes, Hint: "what the node helpers say: kubectl -n " + c.local.cluster.Namespace + " logs daemonset/" + records.NodeName, Do: c.settle},
		progress.Step{Stage: progress.StageGateway, Do: c.handOver},
		progress.Step{Stage: progress.StageTunnel, Do: c.configure},
		progress.Step{Stage: progress.StageProof, Hint: "see where packets get lost: liqoctl network status -o wide (keep what was made with --keep)", Do: c.prove})
}

func (c *connector) reach(ctx context.Context) (string, error) {
	if err := c.both(ctx, (*end).reach); err != nil {
		return "", err
	}
	if c.local.id == c.remote.id {
		return "", progress.SameCluster(c.local.cluster, c.remote.cluster)
	}
	return c.local.cluster.Context + ", " + c.remote.cluster.Context, nil
}

// discover reads both clusters and decides, on copies of their registries, all that can be decided before
// anything is written.
func (c *connector) discover(ctx context.Context) (string, error) {
	if err := c.both(ctx, (*end).discover); err != nil {
		return "", err
	}
	for _, e := range c.ends() {
		if err := e.meet(); err != nil {
			return "", err
		}
	}
	if err := c.choose(ctx); err != nil {
		return "", err
	}
	if err := c.checkPorts(); err != nil {
		return "", err
	}
	for _, e := range c.ends() {
		if err := inventory.ExplainAddresses(e.cluster.Context, e.assign(e.found.registry)); err != nil {
			return "", err
		}
	}
	for _, e := range c.ends() {
		if err := e.checkClashes(e.refuses()); err != nil {
			return "", err
		}
		// Where nodes report already; the warning of those that are not refused comes when all of them do.
		if e.refuses() {
			if err := e.checkForward(true); err != nil {
				return "", err
			}
		}
	}
	err := c.both(ctx, (*end).readGateways)
	return c.local.described() + "; " + c.remote.described(), err
}

// compare refuses to change what stands without the user's consent.
func (c *connector) compare(ctx context.Context) (string, error) {
	d := c.dry((*kube.Cluster).DryRun)
	var err error
	if c.plan, err = plan.Of(ctx, d.rehearse(ctx), d.local.cluster, d.remote.cluster); err != nil {
		return "", err
	}
	var lines []string
	for i, e := range c.ends() {
		lines = append(append(lines, c.plan.Clusters[i].Differences()...), e.unreserved...)
		e.notePublic()
		if c.planning && e.have == nil {
			e.noteUndetected()
		}
	}
	if c.planning && c.replacesOnly() {
		c.reporter.Note("second gateways carry packets while the only ones are replaced, if nodes have room for them")
	}
	return plan.DecideDifferences(lines, c.options.Update || c.planning)
}

// install makes both installations.
func (c *connector) install(ctx context.Context) (string, error) {
	c.writing = true
	// Where there are none: the first object that is written to either cluster takes the locks of both, which are in
	// them.
	if err := c.both(ctx, (*end).makeNamespace); err != nil {
		return "", err
	}
	for _, e := range c.ends() {
		go e.nodes.follow(ctx, e.cluster)
	}
	return "namespace " + c.local.cluster.Namespace, c.both(ctx, (*end).install)
}

// settle waits for the nodes of both sides, and refuses those that cannot carry the peering while nothing of it is
// there.
func (c *connector) settle(ctx context.Context) (string, error) {
	err := c.both(ctx, func(e *end, ctx context.Context) error {
		if err := e.settle(ctx); err != nil {
			return err
		}
		if err := e.checkForward(e.refuses()); err != nil {
			return err
		}
		return checkImplementation(e.reporting(), e.settings.implementation)
	})
	return c.local.settled() + "; " + c.remote.settled(), err
}

// prepare makes keys, gateways and reservations, which need the other side's ranges.
func (c *connector) prepare(ctx context.Context) (string, error) {
	if err := c.agreeOnKeys(ctx); err != nil {
		return "", err
	}
	err := c.both(ctx, (*end).prepare)
	for _, e := range c.ends() {
		if err == nil && e.have == nil {
			e.noteRemapped()
		}
	}
	return c.local.mapped() + "; " + c.remote.mapped(), err
}

// mapped describes in a few words how the peer's pods are seen here.
func (e *end) mapped() string {
	text := "pods of " + e.peer.name
	for _, m := range e.addresses.Pods {
		if m.Identity() {
			text += fmt.Sprintf(" %s", m.Real)
		} else {
			text += fmt.Sprintf(" %s as %s", m.Real, m.Seen)
		}
	}
	return text + " in " + e.name
}

// configure writes the peering's documents: the server's at once, the client's when it is known where the server
// is. Gateways that they name no more have ended by then.
func (c *connector) configure(ctx context.Context) (string, error) {
	// As a rule this changes nothing. But reservations without a document look like orphans to whoever repairs
	// them in between.
	if err := c.both(ctx, (*end).reserve); err != nil {
		return "", err
	}
	if err := c.drainGateways(ctx); err != nil {
		return "", err
	}
	server, client := c.server(), c.server().peer
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return server.write(inner, server.document()) })
	group.Go(func() error { return client.awaitEndpoints(inner) })
	if err := group.Wait(); err != nil {
		return "", err
	}
	if err := client.write(ctx, client.document()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s listens at %s, MTU %d", server.name, described(client.written.Endpoints()), client.written.MTU), nil
}
