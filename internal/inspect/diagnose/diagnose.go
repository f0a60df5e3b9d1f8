// Package diagnose finds out what keeps a peering from working: it gathers what clusters, nodes and gateways report,
// and judges it by a table of checks with stable IDs. Where one failure explains others, these are marked as following.
// It changes nothing, unless Probe is set: package pathtest then sends packets of its own.
package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Options are the options of Run.
type Options struct {
	Cluster *cluster.Cluster
	Remote  *cluster.Cluster // nil: the local cluster alone
	Peer    string           // "": all peerings, or that with Remote
	// Probe sends packets along all paths, for which Remote and the rights of level administer are needed.
	Probe bool
	Image string // of the pods that Probe runs
	// Timeout bounds the whole run; 0: nothing does.
	Timeout time.Duration
}

// State is how a check ended.
type State string

// The states.
const (
	Passed    State = "passed"
	Warning   State = "warning"   // something that may need action; the peering can work
	Failed    State = "failed"    // a cause: no other failure explains it
	Following State = "following" // it fails, as is to be expected after another failure
	Skipped   State = "skipped"   // what it takes could not be read, or does not apply
)

// Finding is the outcome of a check for a cluster, or for one side of a peering.
type Finding struct {
	ID       string `json:"id"`
	Layer    Layer  `json:"layer"`
	Cluster  string `json:"cluster"`
	Peer     string `json:"peer,omitempty"` // "": the check concerns the cluster
	State    State  `json:"state"`
	Observed string `json:"observed,omitempty"` // of a check that is skipped: why
	Cause    string `json:"cause,omitempty"`    // the likely one
	Fix      string `json:"fix,omitempty"`      // what to do about it
	Follows  string `json:"follows,omitempty"`  // ID of the failure that explains it
}

// Subject is the cluster, or the side of the peering: such as "a" or "a to b".
func (f Finding) Subject() string {
	if f.Peer == "" {
		return f.Cluster
	}
	return f.Cluster + " to " + f.Peer
}

// Page is the page of a check in the documentation.
func Page(id string) string { return "docs/checks/" + id + ".md" }

// Result is what the checks found, in the order of the table.
type Result struct {
	Passed bool      `json:"passed"` // nothing failed
	Checks []Finding `json:"checks"`
}

// Count counts the findings of a state.
func (r Result) Count(s State) (n int) {
	for _, f := range r.Checks {
		if f.State == s {
			n++
		}
	}
	return n
}

// Run makes all checks. That one fails is no error.
func Run(ctx context.Context, o Options, r progress.Reporter) (Result, error) {
	ctx, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	clusters := []*cluster.Cluster{o.Cluster}
	if o.Remote != nil {
		clusters = append(clusters, o.Remote)
	}
	all := make([]*facts, len(clusters))
	err := progress.EachOf([]int{0, 1}[:len(clusters)], func(i int) (err error) {
		all[i], err = gather(ctx, clusters[i])
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if o.Remote != nil {
		all[0].remote, all[1].remote = o.Remote.Context, o.Cluster.Context
	}
	sides, err := o.choose(all)
	if err != nil {
		return Result{}, err
	}
	if o.Probe {
		paths, err := pathtest.Run(ctx, pathtest.Options{Local: o.Cluster, Remote: o.Remote, Peer: o.Peer, Image: o.Image}, r)
		for _, f := range all {
			f.note(packets, err)
			f.paths = paths.Checks
		}
	}
	return evaluate(all, sides), nil
}

// choose returns the sides of peerings that are asked for.
func (o Options) choose(all []*facts) (sides []*side, err error) {
	if len(all) == 2 {
		return meet(all[0], all[1], o.Peer)
	}
	local := all[0]
	for _, p := range local.peerings {
		if o.Peer == "" || p.Peer == o.Peer {
			sides = append(sides, local.side(p))
		}
	}
	if o.Peer != "" && len(sides) == 0 && local.unread[peerings] == nil {
		return nil, &inventory.NoPeeringError{Context: local.cluster.Context, Name: o.Peer, Known: local.peeringNames()}
	}
	return sides, nil
}

// meet returns the sides of the peering of two clusters: one, if the other cannot be read or does not have it.
func meet(local, remote *facts, name string) (sides []*side, err error) {
	if local.fabric != nil && remote.fabric != nil && local.fabric.ClusterID == remote.fabric.ClusterID {
		return nil, progress.SameCluster(local.cluster, remote.cluster)
	}
	here, there := local.sideWith(remote, name), remote.sideWith(local, "")
	if here == nil && there == nil && local.fabric != nil && remote.fabric != nil {
		return nil, &inventory.NoPeeringError{Context: local.cluster.Context, Name: remote.name, Known: local.peeringNames()}
	}
	for _, s := range []struct {
		own  *side
		peer *side
		far  *facts
	}{{here, there, remote}, {there, here, local}} {
		if s.own != nil {
			s.own.peer, s.own.far = s.peer, s.far
			sides = append(sides, s.own)
		}
	}
	return sides, nil
}

// evaluate makes every check of the table, and marks what follows from another failure.
func evaluate(clusters []*facts, sides []*side) (r Result) {
	for _, c := range Table() {
		switch {
		case c.cluster != nil:
			for _, f := range clusters {
				r.Checks = append(r.Checks, c.finding(f, nil, func() outcome { return c.cluster(f) }))
			}
		default:
			for _, s := range sides {
				r.Checks = append(r.Checks, c.finding(s.facts, s, func() outcome { return c.side(s) }))
			}
		}
	}
	for i := range r.Checks {
		r.Checks[i].Follows = follows(r.Checks[:i], r.Checks[i])
		if r.Checks[i].Follows != "" {
			r.Checks[i].State = Following
		}
	}
	r.Passed = r.Count(Failed) == 0
	return r
}

// finding makes a check, if its facts are known.
func (c Check) finding(f *facts, s *side, look func() outcome) Finding {
	found := Finding{ID: c.ID, Layer: c.Layer, Cluster: f.name}
	if s != nil {
		found.Peer = s.status.Peer
	}
	for _, needed := range c.reads {
		if err := f.unread[needed]; err != nil {
			found.State, found.Observed = Skipped, fmt.Sprintf("%s: %s", needed, because(err))
			return found
		}
	}
	o := look()
	found.State, found.Observed = o.state, records.Brief(o.seen)
	if o.state == Failed || o.state == Warning {
		found.Cause = c.Cause
		found.Fix = cmp.Or(o.hint, filled(cmp.Or(o.fix, c.Fix), f.cluster, found.Peer, f.remote, o.names))
	}
	return found
}

// follows returns the ID of the failure before a finding that explains it; "": none does, or it has not failed. What
// both sides of a peering see is one failure.
func follows(before []Finding, f Finding) string {
	if f.State != Failed {
		return ""
	}
	for _, need := range append(needs(f.ID), f.ID) {
		for _, b := range before {
			far := b.Cluster != f.Cluster
			if b.ID != need || far && !f.Layer.spans() || b.Peer != "" && !far && b.Peer != f.Peer {
				continue
			}
			switch {
			case b.State == Failed && (far || b.ID != f.ID):
				return b.ID
			case b.State == Following:
				return b.Follows
			}
		}
	}
	return ""
}
