package peering

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/seconds"
)

// ManyOptions are the options of ConnectMany.
type ManyOptions struct {
	Clusters []*kube.Cluster
	// Pairs are the peerings, by indices of the clusters. The first one is the local cluster.
	Pairs    [][2]int
	Parallel int // peerings that are connected at the same time
	// ConnectOptions are those of each peering. Of its sides, only the local number of gateways counts, in all
	// clusters. The time limit is also that of each installation.
	ConnectOptions
}

// Connections is the result of ConnectMany.
type Connections struct {
	Installations []Installed      `json:"installations"`
	Peerings      []PairResult     `json:"peerings"`
	Took          seconds.Duration `json:"tookSeconds"`
	Changed       bool             `json:"changed"` // in any cluster
}

// Installed is the result for the installation in one cluster.
type Installed struct {
	Context string `json:"context"`
	Changed bool   `json:"changed"`
	Error   string `json:"error,omitempty"`
	err     error
}

// PairResult is the result for one peering: a Connection, or else an error.
type PairResult struct {
	Local  string      `json:"local"` // contexts
	Remote string      `json:"remote"`
	Result *Connection `json:"result,omitempty"`
	Error  string      `json:"error,omitempty"`
	Hint   string      `json:"hint,omitempty"`
}

// ConnectMany connects several pairs of clusters under one lock of each cluster. All clusters must be reachable, and
// all peerings are planned together before the first write; then liqonet is installed in all clusters, and each peering
// is connected as by Connect. A peering that fails is rolled back and does not end the others; nor does an installation
// that fails, which stays.
func ConnectMany(ctx context.Context, o ManyOptions, r progress.Reporter) (Connections, error) {
	o.Clusters = slices.Clone(o.Clusters)
	var locked []**kube.Cluster
	for i := range o.Clusters {
		locked = append(locked, &o.Clusters[i])
	}
	var last Connections
	result, err := plan.Locked(ctx, r, func(ctx context.Context) (_ Connections, err error) {
		last, err = newMany(o, r).run(ctx)
		return last, err
	}, locked...)
	connected := func(p PairResult) bool { return p.Result != nil }
	if err != nil && slices.ContainsFunc(last.Peerings, connected) {
		return last, nil // it has the errors of the other ones
	}
	return result, err
}

// PlanConnectMany returns the changes that ConnectMany would make. It changes nothing.
func PlanConnectMany(ctx context.Context, o ManyOptions, r progress.Reporter) (plan.Plan, error) {
	m := newMany(o, progress.Planning(r))
	if err := m.reach(ctx); err != nil {
		return plan.Plan{}, err
	}
	return m.plan(ctx)
}

// many is a running ConnectMany.
type many struct {
	ManyOptions
	reporter *once
	names    []string // of the clusters
	result   Connections
}

func newMany(o ManyOptions, r progress.Reporter) *many {
	m := &many{ManyOptions: o, reporter: &once{Reporter: r}, names: make([]string, len(o.Clusters))}
	for _, c := range o.Clusters {
		m.result.Installations = append(m.result.Installations, Installed{Context: c.Context})
	}
	m.result.Peerings = make([]PairResult, len(o.Pairs))
	return m
}

func (m *many) run(ctx context.Context) (Connections, error) {
	start := time.Now()
	stages := &progress.Stages{Reporter: m.reporter}
	err := stages.Run(ctx,
		progress.Step{Stage: progress.StageReach, Do: func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%d clusters", len(m.Clusters)), m.reach(ctx)
		}},
		progress.Step{Stage: progress.StageCompare, Do: func(ctx context.Context) (string, error) {
			p, err := m.plan(ctx)
			if err != nil {
				return "", err
			}
			return p.DecideDifferences(m.Update)
		}})
	if err != nil {
		return Connections{}, err
	}
	each(len(m.Clusters), len(m.Clusters), func(i int) { m.install(ctx, i) })
	if ctx.Err() != nil { // also if another run has written: then all begins again
		err := ctx.Err()
		for _, one := range m.result.Installations {
			err = cmp.Or(one.err, err)
		}
		return m.result, err
	}
	turns := make([]chan struct{}, len(m.Pairs)+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[0])
	each(len(m.Pairs), m.Parallel, func(i int) { m.connect(ctx, i, turns[i], turns[i+1]) })
	m.result.Changed = slices.ContainsFunc(m.result.Installations, func(one Installed) bool { return one.Changed }) ||
		slices.ContainsFunc(m.result.Peerings, func(p PairResult) bool { return p.Result != nil && p.Result.Changed })
	m.result.Took = seconds.Duration(time.Since(start))
	return m.result, ctx.Err()
}

// reach reads all clusters, and decides their names: a derived one that two clusters would have is replaced by the
// longer one.
func (m *many) reach(ctx context.Context) error {
	sites := make([]*site, len(m.Clusters))
	for i, c := range m.Clusters {
		sites[i] = new(newSite(Side{Cluster: c}, m.Installation, m.reporter))
		sites[i].connecting = true
	}
	err := progress.EachOf(sites, func(s *site) error {
		if err := s.reach(ctx); err != nil {
			return err
		}
		return s.discover(ctx)
	})
	if err != nil {
		return err
	}
	for i, s := range sites {
		if k := slices.IndexFunc(sites[:i], func(o *site) bool { return o.id == s.id }); k >= 0 {
			return &progress.InputError{Err: fmt.Errorf("contexts %q and %q are the same cluster", m.Clusters[k].Context, m.Clusters[i].Context)}
		}
		shared := slices.ContainsFunc(sites, func(o *site) bool { return o.id != s.id && o.name == s.name })
		if m.names[i] = s.name; shared && s.longerName != "" {
			m.names[i] = s.longerName
		}
	}
	for i, name := range m.names {
		if k := slices.Index(m.names, name); k != i {
			return &progress.InputError{
				Err:    fmt.Errorf("clusters %q and %q would both have the name %q", m.Clusters[k].Context, m.Clusters[i].Context, name),
				Advice: "give one of them another name first: liqoctl network init --name NAME " + kube.Flags(m.Clusters[i], nil),
			}
		}
	}
	return nil
}

// plan returns the changes to all clusters. A peering is planned after the ones before it, with their reservations.
func (m *many) plan(ctx context.Context) (plan.Plan, error) {
	dry := make([]*kube.Cluster, len(m.Clusters))
	for i, c := range m.Clusters {
		dry[i] = c.SharedDryRun()
	}
	planned := make(map[int]bool) // clusters whose installations are planned
	for i, pair := range m.Pairs {
		c := newConnector(m.pair(i, dry), progress.Planning(m.reporter))
		c.planning, c.local.installed, c.remote.installed = true, planned[pair[0]], planned[pair[1]]
		if err := c.run(ctx); err != nil {
			return plan.Plan{}, fmt.Errorf("%s and %s: %w", c.local.cluster.Context, c.remote.cluster.Context, err)
		}
		planned[pair[0]], planned[pair[1]] = true, true
	}
	return plan.Of(ctx, nil, dry...)
}

// install installs liqonet in one cluster.
func (m *many) install(ctx context.Context, i int) {
	one, name, start := &m.result.Installations[i], "install "+m.Clusters[i].Context, time.Now()
	m.reporter.Stage(name)
	s := newSite(Side{Cluster: m.Clusters[i], Name: m.names[i]}, m.Installation, about(m.reporter, one.Context))
	// The first write of another installation takes the lock of this cluster: compared now, it could be a difference.
	s.connecting, s.compared = true, true
	one.err = initialise(ctx, &progress.Stages{Reporter: s.reporter}, &s, m.Timeout)
	one.Changed = len(s.changes) > 0
	outcome := ""
	if one.err != nil {
		one.Error, outcome = oneLine(one.err), "failed"
	}
	m.reporter.Done(name, outcome, time.Since(start))
}

// connect connects one pair. It reserves addresses after the pairs before it, as in the plan: own ends its turn.
func (m *many) connect(ctx context.Context, i int, before <-chan struct{}, own chan<- struct{}) {
	p := PairResult{Local: m.Clusters[m.Pairs[i][0]].Context, Remote: m.Clusters[m.Pairs[i][1]].Context}
	name, outcome, start := p.Local+" "+p.Remote, "failed", time.Now()
	m.reporter.Stage(name)
	c := newConnector(m.pair(i, m.Clusters), about(m.reporter, name))
	c.local.installed, c.remote.installed, c.turn = true, true, newTurn(before, own)
	defer c.turn.end()
	var err error
	for _, k := range m.Pairs[i] {
		if one := m.result.Installations[k]; one.err != nil && err == nil {
			err = fmt.Errorf("the installation in %q failed: %w", one.Context, one.err)
		}
	}
	if err == nil {
		var result Connection
		if result, err = c.connect(ctx); err == nil {
			p.Result, outcome = &result, ""
		}
	}
	if err != nil {
		p.Error, p.Hint = oneLine(err), hint.Of(err)
	}
	m.result.Peerings[i] = p
	m.reporter.Done(name, outcome, time.Since(start))
}

// oneLine returns the text of an error in a result.
func oneLine(err error) string {
	return strings.ReplaceAll(progress.WithoutRequests(err).Error(), "\n", "; ")
}

// pair returns the options of one peering.
func (m *many) pair(i int, clusters []*kube.Cluster) ConnectOptions {
	side := func(k int) Side { return Side{Cluster: clusters[k], Name: m.names[k], Gateways: m.Local.Gateways} }
	o := m.ConnectOptions
	o.Local, o.Remote = side(m.Pairs[i][0]), side(m.Pairs[i][1])
	return o
}

// turn orders the reservations of several connects. nil: there is only one.
type turn struct {
	before <-chan struct{} // closed when those before have reserved, or have failed
	end    func()          // lets the next one reserve, after those before
}

func newTurn(before <-chan struct{}, own chan<- struct{}) *turn {
	return &turn{before, sync.OnceFunc(func() {
		go func() {
			<-before
			close(own)
		}()
	})}
}

// reserveInTurn reserves addresses after connects of other pairs of the same command.
func (c *connector) reserveInTurn(ctx context.Context) error {
	if c.turn == nil {
		return nil
	}
	defer c.turn.end()
	select {
	case <-c.turn.before:
		return c.both(ctx, (*member).reserve)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// each calls do for each index below n, some at the same time.
func each(n, parallel int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(max(parallel, 1))
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}
