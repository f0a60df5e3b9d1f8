package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Installation
	Options
	Gateways int // of each peering in each cluster; 0: as it is, else the default
	Keep     bool
	Timeout  time.Duration // of each installation and each peering; 0: progress.TimeLimit
}

// Connections is the result of ConnectMany.
type Connections struct {
	Peerings []PairResult     `json:"peerings"`
	Took     seconds.Duration `json:"tookSeconds"`
	Changed  bool             `json:"changed"` // in any cluster
}

// PairResult is the result for one peering: a Connection, or else an error.
type PairResult struct {
	Local  string      `json:"local"` // contexts
	Remote string      `json:"remote"`
	Result *Connection `json:"result,omitempty"`
	Error  string      `json:"error,omitempty"`
	Hint   string      `json:"hint,omitempty"`
}

// ConnectMany connects several pairs of clusters under one lock of each cluster. All peerings are planned together
// before the first write; then liqonet is installed in all clusters, and each peering is connected as by Connect. A
// peering that fails is rolled back and does not end the others; nor does an installation that fails, which stays.
func ConnectMany(ctx context.Context, o ManyOptions, r progress.Reporter) (Connections, error) {
	o.Clusters = slices.Clone(o.Clusters)
	var locked []**kube.Cluster
	for i := range o.Clusters {
		locked = append(locked, &o.Clusters[i])
	}
	return plan.Locked(ctx, r, func(ctx context.Context) (Connections, error) { return connectMany(ctx, o, r) }, locked...)
}

func connectMany(ctx context.Context, o ManyOptions, r progress.Reporter) (Connections, error) {
	start := time.Now()
	p, err := PlanConnectMany(ctx, o, progress.Quiet{}) // the connects report what remains
	if err != nil {
		return Connections{}, err
	}
	if _, err := p.DecideDifferences(o.Update); err != nil {
		return Connections{}, err
	}
	result := Connections{Peerings: make([]PairResult, len(o.Pairs))}
	failures := make([]error, len(o.Clusters))
	changed := make([]bool, len(o.Clusters))
	each(len(o.Clusters), len(o.Clusters), func(i int) {
		run := &progress.Stages{Reporter: about(r, o.Clusters[i].Context)}
		s := newSite(Side{Cluster: o.Clusters[i]}, o.Installation, run.Reporter)
		s.connecting = true
		failures[i] = initialise(ctx, run, &s, o.Timeout)
		changed[i] = len(s.changes) > 0
	})
	if ctx.Err() != nil { // also if another run has written: then all begins again
		return result, errors.Join(append(failures, ctx.Err())...)
	}
	each(len(o.Pairs), o.Parallel, func(i int) { result.Peerings[i] = o.connect(ctx, i, failures, r) })
	for _, p := range result.Peerings {
		changed = append(changed, p.Result != nil && p.Result.Changed)
	}
	result.Changed, result.Took = slices.Contains(changed, true), seconds.Duration(time.Since(start))
	return result, ctx.Err()
}

// connect connects one pair. failures are the errors of the installations.
func (o ManyOptions) connect(ctx context.Context, i int, failures []error, r progress.Reporter) PairResult {
	pair := o.pair(i, o.Clusters)
	p := PairResult{Local: pair.Local.Cluster.Context, Remote: pair.Remote.Cluster.Context}
	err := cmp.Or(failures[o.Pairs[i][0]], failures[o.Pairs[i][1]])
	if err == nil {
		var c Connection
		if c, err = connect(ctx, pair, about(r, p.Local+" "+p.Remote)); err == nil {
			p.Result = &c
			return p
		}
	}
	p.Error, p.Hint = err.Error(), hint.Of(err)
	return p
}

// pair returns the options of one peering.
func (o ManyOptions) pair(i int, clusters []*kube.Cluster) ConnectOptions {
	local, remote := o.Pairs[i][0], o.Pairs[i][1]
	return ConnectOptions{
		Local: Side{Cluster: clusters[local], Gateways: o.Gateways}, Remote: Side{Cluster: clusters[remote], Gateways: o.Gateways},
		Installation: o.Installation, Options: o.Options, Keep: o.Keep, Timeout: o.Timeout,
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

// PlanConnectMany returns the changes that ConnectMany would make. It changes nothing. A peering is planned after the
// ones before it, with their reservations.
func PlanConnectMany(ctx context.Context, o ManyOptions, r progress.Reporter) (plan.Plan, error) {
	dry := make([]*kube.Cluster, len(o.Clusters))
	for i, c := range o.Clusters {
		dry[i] = c.SharedDryRun()
	}
	contexts := make(map[string]string) // by the cluster's name
	for i := range o.Pairs {
		pair := o.pair(i, dry)
		c := newConnector(pair, about(progress.Planning(r), pair.Local.Cluster.Context+" "+pair.Remote.Cluster.Context))
		c.planning = true
		if err := c.run(ctx); err != nil {
			return plan.Plan{}, fmt.Errorf("%s and %s: %w", pair.Local.Cluster.Context, pair.Remote.Cluster.Context, err)
		}
		for _, m := range c.members() {
			if other := contexts[m.name]; other != "" && other != m.cluster.Context {
				return plan.Plan{}, &progress.InputError{
					Err:    fmt.Errorf("clusters %q and %q would both have the name %q", other, m.cluster.Context, m.name),
					Advice: "install one of them first: liqoctl network init --name NAME",
				}
			}
			contexts[m.name] = m.cluster.Context
		}
	}
	return plan.Of(ctx, nil, dry...)
}

// part is the Reporter of one of several operations that run at the same time.
type part struct {
	to   progress.Reporter
	name string
}

// about returns a Reporter that names the subject of what it reports.
func about(r progress.Reporter, name string) progress.Reporter { return part{r, name + ": "} }

// Stage implements progress.Reporter.
func (p part) Stage(name string) { p.to.Stage(p.name + name) }

// Done implements progress.Reporter.
func (p part) Done(name, detail string, took time.Duration) { p.to.Done(p.name+name, detail, took) }

// Note implements progress.Reporter.
func (p part) Note(text string) { p.to.Note(p.name + text) }

// Warn implements progress.Reporter.
func (p part) Warn(text, hint string) { p.to.Warn(p.name+text, hint) }
