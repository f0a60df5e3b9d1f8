// Package diagnose determines why a peering does not work: it gathers the reports of clusters, nodes and gateways, and
// evaluates them by a table of checks with stable IDs. A failure that another one explains is marked as following. It
// changes nothing, unless Probe is set: package pathtest then sends its own packets.
package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Options are the options of Run.
type Options struct {
	Cluster *kube.Cluster
	Remote  *kube.Cluster // nil: the local cluster alone
	Peer    string        // "": all peerings, or that with Remote
	// Probe sends packets along all paths. It requires Remote and the permissions of level administer.
	Probe bool
	Image string // of the pods that Probe runs
	// Timeout bounds the whole run; 0: no limit.
	Timeout time.Duration
}

// State is the result of a check.
type State string

// The states.
const (
	Passed    State = "passed"
	Warning   State = "warning"   // may need action; the peering can work
	Failed    State = "failed"    // a cause: no other failure explains it
	Following State = "following" // failed as a consequence of another failure
	Skipped   State = "skipped"   // its facts could not be read, or it does not apply
)

// Finding is the outcome of a check for a cluster, or for one side of a peering.
type Finding struct {
	ID       string `json:"id"`
	Layer    Layer  `json:"layer"`
	Cluster  string `json:"cluster"`
	Peer     string `json:"peer,omitempty"` // "": the check applies to the cluster
	State    State  `json:"state"`
	Observed string `json:"observed,omitempty"` // reason, if the check is skipped
	Cause    string `json:"cause,omitempty"`    // likely cause
	Fix      string `json:"fix,omitempty"`      // suggested remedy
	Follows  string `json:"follows,omitempty"`  // ID of the failure that explains it
}

// Subject returns the cluster or the side of the peering, such as "a" or "a to b".
func (f Finding) Subject() string {
	if f.Peer == "" {
		return f.Cluster
	}
	return f.Cluster + " to " + f.Peer
}

// Result has the findings of all checks, in the order of the table.
type Result struct {
	Passed bool      `json:"passed"` // no check failed
	Checks []Finding `json:"checks"`
}

// Count returns the number of findings with a state.
func (r Result) Count(s State) (n int) {
	for _, f := range r.Checks {
		if f.State == s {
			n++
		}
	}
	return n
}

// Run reads clusters and makes all checks. A failed check is no error.
func Run(ctx context.Context, o Options, r progress.Reporter) (Result, error) {
	ctx, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	clusters := []*kube.Cluster{o.Cluster}
	if o.Remote != nil {
		clusters = append(clusters, o.Remote)
	}
	all := make([]*facts, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() { all[i] = factsOf(Read(ctx, c)) })
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	sides, err := sidesOf(o.Peer, all)
	if err != nil {
		return Result{}, err
	}
	if o.Probe {
		paths, err := pathtest.Run(ctx, pathtest.Options{Local: o.Cluster, Remote: o.Remote, Peer: o.Peer, Image: o.Image}, r)
		for _, f := range all {
			f.Errors[packets] = err
			f.paths = paths.Checks
		}
	}
	return evaluate(all, sides), nil
}

// Read reads what the checks need of a cluster.
func Read(ctx context.Context, c *kube.Cluster) *observe.Snapshot {
	s := read.Take(ctx, c, observe.Parts()[1:]...)
	_ = status.Complete(ctx, status.Options{Cluster: c}, []*observe.Snapshot{s}) // only ctx.Err()
	return s
}

// Of makes all checks, except those with Probe, of what was read of a cluster, or of two.
func Of(peer string, snapshots ...*observe.Snapshot) (Result, error) {
	var all []*facts
	for _, s := range snapshots {
		all = append(all, factsOf(s))
	}
	sides, err := sidesOf(peer, all)
	if err != nil {
		return Result{}, err
	}
	return evaluate(all, sides), nil
}

// sidesOf returns the selected sides of peerings.
func sidesOf(peer string, all []*facts) (sides []*side, err error) {
	if len(all) == 2 {
		all[0].remote, all[1].remote = all[1].Context, all[0].Context
		return commonSides(all[0], all[1], peer)
	}
	local := all[0]
	for _, p := range local.peerings {
		if peer == "" || p.Peer == peer {
			sides = append(sides, local.side(p))
		}
	}
	if peer != "" && len(sides) == 0 && local.Errors[peerings] == nil {
		return nil, &inventory.NoPeeringError{Context: local.Context, Name: peer, Known: local.Names()}
	}
	return sides, nil
}

// commonSides returns the sides of the peering between two clusters: only one of them, if the other cannot
// be read or does not have the peering.
func commonSides(local, remote *facts, name string) (sides []*side, err error) {
	if local.Fabric != nil && remote.Fabric != nil && local.Fabric.ClusterID == remote.Fabric.ClusterID {
		return nil, progress.SameCluster(local.Context, remote.Context)
	}
	here, there := local.sideWith(remote, name), remote.sideWith(local, "")
	if here == nil && there == nil && local.Fabric != nil && remote.Fabric != nil {
		return nil, &inventory.NoPeeringError{Context: local.Context, Name: remote.name, Known: local.Names()}
	}
	if here != nil {
		here.peer, here.peerFacts = there, remote
		sides = append(sides, here)
	}
	if there != nil {
		there.peer, there.peerFacts = here, local
		sides = append(sides, there)
	}
	return sides, nil
}

// evaluate makes every check of the table and marks the failures that follow from others.
func evaluate(clusters []*facts, sides []*side) (r Result) {
	failures := make(map[string][]Finding) // by ID
	var whole []*side                      // clusters, without a peering
	for _, f := range clusters {
		whole = append(whole, &side{facts: f})
	}
	table := Table()
	for _, c := range table {
		first, subjects := len(r.Checks), sides
		if c.cluster != nil {
			subjects = whole
		}
		for _, s := range subjects {
			r.Checks = append(r.Checks, c.finding(s, c.outcome(s)))
		}
		explanations := append(needs(table, c.ID), c.ID)
		for i := first; i < len(r.Checks); i++ {
			f := &r.Checks[i]
			if f.State != Failed {
				continue
			}
			if f.Follows = follows(failures, explanations, *f); f.Follows != "" {
				f.State = Following
			}
			failures[f.ID] = append(failures[f.ID], *f)
		}
	}
	r.Passed = r.Count(Failed) == 0
	return r
}

// outcome makes a check of a side, or of its cluster, if the facts are known. It fails if a finding with its code
// changes the state of a peering; for a side whatever else could not be read: status shows it.
func (c Check) outcome(s *side) outcome {
	code, decisive, reads := health.Code(c.ID), c.decisive(s), c.reads
	if c.cluster == nil && c.side == nil {
		reads = []fact{peerings}
	}
	for _, needed := range reads {
		switch err := s.Errors[needed]; {
		case err == nil:
		case c.cluster == nil && len(decisive) > 0:
			return s.found(Failed, code)
		default:
			return skipped(fmt.Sprintf("%s: %v", needed, kube.Unread(err)))
		}
	}
	switch {
	case c.cluster != nil:
		if o := c.cluster(s.facts); o.state == Failed || len(decisive) == 0 {
			return o
		}
		return failed("%s", strings.Join(slices.Compact(decisive), "; "))
	case c.side != nil:
		if o := c.side(s); o.state == Failed || len(decisive) == 0 {
			return o
		}
	case slices.Contains([]Layer{Overlay, Tunnel, Path}, LayerOf(c.ID)) && !s.reported():
		return skipped("no gateway has reported lately")
	}
	return s.found(Failed, code)
}

// decisive returns what findings with the check's code say that change the state of the side's peering, or of one of
// the cluster's.
func (c Check) decisive(s *side) (seen []string) {
	of := []status.Peering{s.status}
	if c.cluster != nil {
		of = s.peerings
	}
	for _, p := range of {
		for _, f := range health.With(p.Findings, health.Code(c.ID)) {
			if f.Level > health.Warning {
				seen = append(seen, f.Text)
			}
		}
	}
	return seen
}

// finding returns the finding with the outcome of a check.
func (c Check) finding(s *side, o outcome) Finding {
	found := Finding{ID: c.ID, Layer: LayerOf(c.ID), Cluster: s.name, Peer: s.status.Peer, State: o.state, Observed: records.Brief(o.observed)}
	if o.state == Failed || o.state == Warning {
		found.Cause = c.Cause
		found.Fix = cmp.Or(o.hint, s.filled(c.Fix, o.names...))
	}
	return found
}

// follows returns the ID of the earlier failure that explains another one, among those of checks with these IDs; "" if
// there is none. A failure that both sides of a peering observe counts once.
func follows(failures map[string][]Finding, ids []string, f Finding) string {
	for _, id := range ids {
		for _, b := range failures[id] {
			far := b.Cluster != f.Cluster
			if far && !f.Layer.spans() || b.Peer != "" && !far && b.Peer != f.Peer {
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
