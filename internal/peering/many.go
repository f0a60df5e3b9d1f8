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
	run := &progress.Stages{Reporter: r}
	err := run.Run(ctx, progress.Step{Stage: progress.StageCompare, Do: func(ctx context.Context) (string, error) {
		p, err := PlanConnectMany(ctx, o, progress.Quiet{}) // the connects report what remains
		if err != nil {
			return "", err
		}
		return p.DecideDifferences(o.Update)
	}})
	if err != nil {
		return Connections{}, err
	}
	result := Connections{Peerings: make([]PairResult, len(o.Pairs))}
	failures := make([]error, len(o.Clusters))
	changed := make([]bool, len(o.Clusters))
	each(len(o.Clusters), len(o.Clusters), func(i int) {
		name, own := "install "+o.Clusters[i].Context, time.Now()
		r.Stage(name)
		s := newSite(Side{Cluster: o.Clusters[i]}, o.Installation, about(r, o.Clusters[i].Context))
		s.connecting = true
		failures[i] = initialise(ctx, &progress.Stages{Reporter: s.reporter}, &s, o.Timeout)
		changed[i] = len(s.changes) > 0
		r.Done(name, "", time.Since(own))
	})
	if ctx.Err() != nil { // also if another run has written: then all begins again
		return result, errors.Join(append(failures, ctx.Err())...)
	}
	each(len(o.Pairs), o.Parallel, func(i int) {
		name, own := o.name(i), time.Now()
		r.Stage(name)
		result.Peerings[i] = o.connect(ctx, i, failures, about(r, name))
		r.Done(name, "", time.Since(own))
	})
	for _, p := range result.Peerings {
		changed = append(changed, p.Result != nil && p.Result.Changed)
	}
	result.Changed, result.Took = slices.Contains(changed, true), seconds.Duration(time.Since(start))
	return result, ctx.Err()
}

// name returns the contexts of a pair.
func (o ManyOptions) name(i int) string {
	return o.Clusters[o.Pairs[i][0]].Context + " " + o.Clusters[o.Pairs[i][1]].Context
}

// connect connects one pair. failures are the errors of the installations.
func (o ManyOptions) connect(ctx context.Context, i int, failures []error, r progress.Reporter) PairResult {
	c := newConnector(o.pair(i, o.Clusters), r)
	p := PairResult{Local: c.local.cluster.Context, Remote: c.remote.cluster.Context}
	err := cmp.Or(failures[o.Pairs[i][0]], failures[o.Pairs[i][1]])
	if err == nil {
		c.local.installed, c.remote.installed = true, true
		var result Connection
		if result, err = c.connect(ctx); err == nil {
			p.Result = &result
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
	planned := make(map[int]bool)       // clusters whose installations are planned
	notes := &once{Reporter: progress.Planning(r), reported: make(map[string]bool)}
	for i, pair := range o.Pairs {
		c := newConnector(o.pair(i, dry), notes)
		c.planning, c.local.installed, c.remote.installed = true, planned[pair[0]], planned[pair[1]]
		if err := c.run(ctx); err != nil {
			return plan.Plan{}, fmt.Errorf("%s and %s: %w", c.local.cluster.Context, c.remote.cluster.Context, err)
		}
		planned[pair[0]], planned[pair[1]] = true, true
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

// once is a Reporter that omits what it has reported before, as notes about a cluster of several peerings.
type once struct {
	progress.Reporter
	reported map[string]bool
}

// Note implements progress.Reporter.
func (o *once) Note(text string) {
	if !o.reported[text] {
		o.reported[text] = true
		o.Reporter.Note(text)
	}
}

// Warn implements progress.Reporter.
func (o *once) Warn(text, hint string) {
	if !o.reported[text] {
		o.reported[text] = true
		o.Reporter.Warn(text, hint)
	}
}

// part is the Reporter of one of several operations that run at the same time: it omits stages.
type part struct {
	progress.Reporter
	name string
}

// about returns a Reporter that names the subject of what it reports.
func about(r progress.Reporter, name string) progress.Reporter {
	return part{progress.Planning(r), name + ": "}
}

// Note implements progress.Reporter.
func (p part) Note(text string) { p.Reporter.Note(p.name + text) }

// Warn implements progress.Reporter.
func (p part) Warn(text, hint string) { p.Reporter.Warn(p.name+text, hint) }
