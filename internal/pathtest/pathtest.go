// Package pathtest tests all paths of a peering on demand. It sends packets between pods of liqonet's image on the
// nodes of both clusters, and compares the results with the records of the peering. Package probe runs in the pods. It
// removes all objects that it creates, and those of an earlier test that was killed.
package pathtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Options are the options of Run.
type Options struct {
	Local, Remote *kube.Cluster
	Peer          string        // in the local cluster; "": the peering between the two clusters
	Image         string        // of the pods; "": that of the installation, in each cluster
	Nodes         int           // of each cluster that take part; 0: all Ready ones
	Hold          time.Duration // how long connections are kept open; 0: not at all
	Timeout       time.Duration // for the rest; 0: none
	// Streams is the number of concurrent TCP streams of a measurement between pairs of nodes, one pair unless Nodes is
	// set. 0: test instead of measuring.
	Streams int
}

// Result is the result of a test.
type Result struct {
	Passed bool    `json:"passed"` // no check failed
	Checks []Check `json:"checks"`
	// Silent are the nodes that are not Ready and took no part.
	Silent []End `json:"silent,omitempty"`
	// Performance is the result of a measurement, which has no checks.
	Performance []Performance        `json:"performance,omitempty"`
	Stages      []progress.StageTime `json:"stages"`
}

// Run tests the paths of a peering. A failed check is no error.
func Run(ctx context.Context, o Options, r progress.Reporter) (_ Result, err error) {
	timeout := o.Timeout
	if o.Streams > 0 {
		o.Nodes = max(o.Nodes, 1)
	}
	if timeout > 0 {
		timeout += o.Hold + o.measuring()
	}
	ctx, cancel := progress.Within(ctx, timeout)
	defer cancel()
	name := inventory.NewRun()
	t := &test{Options: o, sides: []*side{{cluster: o.Local, run: name}, {cluster: o.Remote, run: name}}}
	defer func() {
		if e := t.remove(ctx); err == nil {
			err = e
		}
	}()
	run := progress.Stages{Reporter: r}
	stages := []progress.Step{
		{Stage: progress.StageReach, Do: t.reach}, {Stage: progress.StageNodes, Do: t.serve},
		{Stage: progress.StageObjects, Do: t.publish}, {Stage: progress.StageProof, Do: t.ask},
	}
	if o.Streams > 0 {
		stages = append(stages[:1], t.measuring()...)
	}
	if err = run.Run(ctx, stages...); err != nil {
		return Result{}, err
	}
	t.result.Stages = run.Times
	return t.result, nil
}

// test is a running test.
type test struct {
	Options

	sides   []*side
	created bool // objects may exist
	// result is complete at the end.
	result Result
}

// each calls do for both sides concurrently, with their peers.
func (t *test) each(do func(s, peer *side) error) error {
	return progress.EachOf([]int{0, 1}, func(i int) error { return do(t.sides[i], t.sides[1-i]) })
}

// reach finds the peering in both clusters, and removes the objects of an earlier test.
func (t *test) reach(ctx context.Context) (string, error) {
	if err := t.each(func(s, _ *side) error { return s.reach(ctx, t.Image) }); err != nil {
		return "", err
	}
	local, remote := t.sides[0], t.sides[1]
	if local.fabric.ClusterID == remote.fabric.ClusterID {
		return "", progress.SameCluster(local.cluster.Context, remote.cluster.Context)
	}
	if err := t.each(func(s, peer *side) error { return s.choose(peer.fabric, t.Nodes) }); err != nil {
		return "", err
	}
	if t.Peer != "" && t.Peer != local.peering.Name {
		return "", fmt.Errorf("peering %q of cluster %q is not with cluster %q: that is %q", t.Peer, local.cluster.Context, remote.cluster.Context, local.peering.Name)
	}
	t.created = true
	err := t.each(func(s, _ *side) error { return s.clean(ctx) })
	return fmt.Sprintf("%d nodes of %s, %d of %s", len(local.nodes), local.fabric.Name, len(remote.nodes), remote.fabric.Name), err
}

// serve runs servers on the nodes of both sides.
func (t *test) serve(ctx context.Context) (string, error) {
	err := t.each(func(s, _ *side) error { return s.serve(ctx, s.values("--token", s.token)) })
	return fmt.Sprintf("%d servers", len(t.sides[0].servers)+len(t.sides[1].servers)), err
}

// publish creates a Service in each cluster whose endpoints are the servers of the other.
func (t *test) publish(ctx context.Context) (string, error) {
	return "2 Services", t.each(func(s, peer *side) error { return s.publish(ctx, peer) })
}

// ask runs probes on all nodes, which query the servers of the other side, and evaluates their reports.
func (t *test) ask(ctx context.Context) (string, error) {
	if err := t.each(func(s, peer *side) error { return s.ask(ctx, peer, t.Hold) }); err != nil {
		return "", err
	}
	for i, s := range t.sides {
		for _, name := range s.notReady {
			t.result.Silent = append(t.result.Silent, End{Cluster: s.fabric.Name, Kind: Node, Node: name})
		}
		for _, r := range s.reports {
			t.result.Checks = append(t.result.Checks, judge(s, t.sides[1-i], r, t.Hold)...)
		}
	}
	failed := func(c Check) bool { return c.State == Failed }
	t.result.Passed = len(t.result.Checks) > 0 && !slices.ContainsFunc(t.result.Checks, failed)
	return fmt.Sprintf("%d checks", len(t.result.Checks)), nil
}

// remove removes the objects of the test, even after its timeout.
func (t *test) remove(ctx context.Context) error {
	if !t.created {
		return nil
	}
	ctx, cancel := progress.Afterwards(ctx)
	defer cancel()
	return t.each(func(s, _ *side) error { return progress.Persist(ctx, s.remove) })
}
