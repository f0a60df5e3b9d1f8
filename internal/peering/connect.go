package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// Connect joins two clusters, or completes or updates what joins them, and returns when packets were seen to
// cross both ways. Without Update it changes nothing of a connection that stands; differences are a
// *DifferenceError. A failure removes what this run made, unless Keep says otherwise.
func Connect(ctx context.Context, o ConnectOptions, r Reporter) (Connection, error) {
	o, err := o.normalize()
	if err != nil {
		return Connection{}, err
	}
	start := time.Now()
	c := newConnector(o, r)
	bounded, cancel := within(ctx, o.Timeout)
	defer cancel()
	if err := c.run(bounded); err != nil {
		c.fail(ctx, err)
		return Connection{}, err
	}
	changes := append(c.local.changes, c.remote.changes...)
	return Connection{
		Local: c.local.result(), Remote: c.remote.result(),
		MTU: c.local.written.MTU, Hops: hops(c.local, c.remote),
		Stages: c.stages.times, Took: time.Since(start), Changed: len(changes) > 0, Objects: changes,
	}, nil
}

// PlanConnect returns what Connect would change before it verifies the path, and changes nothing.
func PlanConnect(ctx context.Context, o ConnectOptions, r Reporter) (Plan, error) {
	o, err := o.normalize()
	if err != nil {
		return Plan{}, err
	}
	c := newConnector(o, planning{r})
	c.planning = true
	bounded, cancel := within(ctx, o.Timeout)
	defer cancel()
	err = c.run(bounded)
	return c.plan, err
}

// connector is a connect on its way.
type connector struct {
	ConnectOptions
	stages         stages
	reporter       Reporter
	local, remote  *end
	server, client *end // the same two
	planning       bool // the plan is all that is wanted
	plan           Plan
	rendering      bool // objects are wanted, with keys
}

func newConnector(o ConnectOptions, r Reporter) *connector {
	run := newRun()
	part := func(side Side, role records.Role) *end {
		return &end{site: site{Side: side, Installation: o.Installation, reporter: r, run: run, connecting: true}, role: role}
	}
	c := &connector{ConnectOptions: o, stages: stages{reporter: r}, reporter: r}
	if o.LocalServes {
		c.local, c.remote = part(o.Local, records.Server), part(o.Remote, records.Client)
		c.server, c.client = c.local, c.remote
	} else {
		c.local, c.remote = part(o.Local, records.Client), part(o.Remote, records.Server)
		c.server, c.client = c.remote, c.local
	}
	return c
}

// both runs a step for the two ends at once.
func (c *connector) both(ctx context.Context, step func(context.Context, *end) error) error {
	return both(ctx, c.local, c.remote, step)
}

// other is the end that e is connected with.
func (c *connector) other(e *end) *end {
	if e == c.local {
		return c.remote
	}
	return c.local
}

func (c *connector) run(ctx context.Context) error {
	steps := []struct {
		stage, hint string
		step        func(context.Context) (string, error)
	}{
		{stageReach, "", c.reach},
		{stageDiscover, "", c.discover},
		{stageCompare, "", c.compare},
		{stageInstall, "", c.install},
		{stageNodes, "what the node helpers say: kubectl -n " + c.Local.Cluster.Namespace + " logs daemonset/" + records.NodeName, c.settle},
		{stageGateway, "", c.prepare},
		{stageTunnel, "", c.configure},
		{stageProof, "see where packets get lost: liqoctl network status -o wide (keep what was made with --keep)", c.prove},
	}
	if c.planning {
		steps = steps[:3]
	}
	for _, s := range steps {
		if err := c.stages.run(ctx, s.stage, s.hint, s.step); err != nil {
			return err
		}
	}
	return nil
}

func (c *connector) reach(ctx context.Context) (string, error) {
	if err := c.both(ctx, func(ctx context.Context, e *end) error { return e.reach(ctx) }); err != nil {
		return "", err
	}
	if c.local.id == c.remote.id {
		return "", &InputError{
			Err:  fmt.Errorf("%q and %q are the same cluster", c.local.Cluster.Context, c.remote.Cluster.Context),
			hint: "name another one with --remote-context or --remote-kubeconfig",
		}
	}
	return c.local.Cluster.Context + ", " + c.remote.Cluster.Context, nil
}

// discover reads both clusters and decides, on copies of their registries, all that can be decided before
// anything is written.
func (c *connector) discover(ctx context.Context) (string, error) {
	if err := c.both(ctx, func(ctx context.Context, e *end) error { return e.discover(ctx) }); err != nil {
		return "", err
	}
	for _, e := range []*end{c.local, c.remote} {
		if err := e.meet(c.other(e)); err != nil {
			return "", err
		}
	}
	for _, e := range []*end{c.local, c.remote} {
		if err := e.draft(c.other(e)); err != nil {
			return "", err
		}
	}
	for _, e := range []*end{c.local, c.remote} {
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
	err := c.both(ctx, func(ctx context.Context, e *end) (err error) {
		if e.keys, err = readKeys(ctx, e.Cluster, e.peering); err != nil || e.have == nil {
			return err
		}
		return e.readSizes(ctx)
	})
	return c.local.described() + "; " + c.remote.described(), err
}

// compare refuses to change what stands without the user's consent.
func (c *connector) compare(ctx context.Context) (string, error) {
	d := c.dry((*cluster.Cluster).DryRun)
	err := d.rehearse(ctx)
	if err == nil {
		c.plan, err = planOf(ctx, d.local.Cluster, d.remote.Cluster)
	}
	if err != nil {
		return "", err
	}
	var lines []string
	for i, e := range []*end{c.local, c.remote} {
		lines = append(append(lines, c.plan.Clusters[i].differences()...), e.newReservations()...)
	}
	return decideDifferences(lines, c.Update || c.planning)
}

// endpoints are those of a Service, or the ones that the client has while all of them are good.
func (c *connector) endpoints(svc *corev1.Service) []string {
	now, _ := serviceEndpoints(svc, c.server.discovery.Nodes, c.wishes())
	if have := c.client.have; have != nil && stillGood(have.Tunnel.Endpoints, svc, c.server.discovery.Nodes, c.wishes()) {
		return have.Tunnel.Endpoints
	}
	return now
}

func (c *connector) wishes() endpointWishes {
	return endpointWishes{address: c.ClientAddress, port: c.ClientPort}
}

// install makes both installations.
func (c *connector) install(ctx context.Context) (string, error) {
	err := c.both(ctx, func(ctx context.Context, e *end) error { return e.install(ctx) })
	return "namespace " + c.Local.Cluster.Namespace, err
}

// settle waits for the nodes of both sides, and refuses those that cannot carry the peering while nothing of it is
// there.
func (c *connector) settle(ctx context.Context) (string, error) {
	err := c.both(ctx, func(ctx context.Context, e *end) error {
		if err := e.settle(ctx); err != nil {
			return err
		}
		if err := e.checkForward(e.refuses()); err != nil {
			return err
		}
		return checkImplementation(e.reporting(), c.Implementation)
	})
	return c.local.settled() + "; " + c.remote.settled(), err
}

// prepare makes keys, gateways and reservations, which need the other side's ranges.
func (c *connector) prepare(ctx context.Context) (string, error) {
	if err := c.agreeOnKeys(ctx); err != nil {
		return "", err
	}
	err := c.both(ctx, func(ctx context.Context, e *end) error { return e.prepare(ctx, c.other(e), c.ConnectOptions) })
	for _, e := range []*end{c.local, c.remote} {
		if err == nil && e.have == nil {
			e.noteRemapped(c.other(e))
		}
	}
	return c.local.mapped(c.remote) + "; " + c.remote.mapped(c.local), err
}

// mapped describes in a few words how the peer's pods are seen here.
func (e *end) mapped(peer *end) string {
	text := "pods of " + peer.name
	for _, m := range e.addresses.pods {
		if m.Identity() {
			text += fmt.Sprintf(" %s", m.Real)
		} else {
			text += fmt.Sprintf(" %s as %s", m.Real, m.Seen)
		}
	}
	return text + " in " + e.name
}

// configure writes the peering's documents: the server's at once, the client's when it is known where the server
// is.
func (c *connector) configure(ctx context.Context) (string, error) {
	// As a rule this changes nothing. But reservations without a document look like orphans to whoever repairs
	// them in between.
	if err := c.both(ctx, func(ctx context.Context, e *end) error { return e.reserve(ctx, c.other(e)) }); err != nil {
		return "", err
	}
	var endpoints []string
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.server.write(inner, c.client, func(live *records.Peering) records.Peering {
			return c.server.document(c.client, c.ConnectOptions, nil, live)
		})
	})
	group.Go(func() error {
		return c.server.Cluster.FailFast(inner, gatewaySelector(c.server.peering), func(ctx context.Context) (err error) {
			endpoints, err = awaitEndpoints(ctx, c.server, c.endpoints, c.wishes())
			return later(err)
		})
	})
	if err := group.Wait(); err != nil {
		return "", err
	}
	err := c.client.write(ctx, c.server, func(live *records.Peering) records.Peering {
		return c.client.document(c.server, c.ConnectOptions, endpoints, live)
	})
	return fmt.Sprintf("%s listens at %s, MTU %d", c.server.name, strings.Join(endpoints, ", "), c.client.written.MTU), err
}

// fail undoes what a run made that failed or was interrupted by that cause.
func (c *connector) fail(ctx context.Context, cause error) {
	made := slices.ContainsFunc([]*end{c.local, c.remote}, func(e *end) bool { return e.installing || e.joining })
	switch {
	case !made:
		return
	case c.Keep:
		c.reporter.Note("not rolled back (--keep); to remove what was created: liqoctl network disconnect, liqoctl network reset")
		return
	}
	rest, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), undoTime, &timeoutError{undoTime})
	defer cancel()
	if errors.Is(cause, context.Canceled) {
		cause = errInterrupted
	}
	c.reporter.Note("rolling back: " + cause.Error())
	var errs [2]error
	group := errgroup.Group{}
	for i, e := range []*end{c.local, c.remote} {
		group.Go(func() error {
			if errs[i] = persist(rest, e.undo); errs[i] == nil {
				c.reporter.Note(e.undone())
			}
			return nil
		})
	}
	_ = group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		c.reporter.Warn("rollback is incomplete: "+err.Error(), "liqoctl network disconnect, then liqoctl network reset")
	}
}

var errInterrupted = errors.New("interrupted")

// undone says what a rollback has removed.
func (e *end) undone() string {
	var removed []string
	if e.joining {
		removed = append(removed, fmt.Sprintf("peering %q", e.peering))
	}
	if e.installing {
		removed = append(removed, "the installation")
	}
	if len(removed) == 0 {
		return fmt.Sprintf("cluster %q: nothing to roll back", e.Cluster.Context)
	}
	return fmt.Sprintf("cluster %q: rolled back, removed %s", e.Cluster.Context, strings.Join(removed, " and "))
}

// undoTime is how long a failed connect takes at most to remove what it made: namespaces take some ten seconds, an
// API server may have to come back first, and a kubelet that waits for a registry ends no pod until that is over. A
// second signal ends it.
const undoTime = 3 * time.Minute

// persistPause is between two attempts to reach an API server that is lost.
const persistPause = 500 * time.Millisecond

// persist tries something, which may be done twice, until no API server is lost on the way or ctx ends.
func persist(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil || !cluster.Lost(err) {
			return err
		}
		timer := time.NewTimer(persistPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
