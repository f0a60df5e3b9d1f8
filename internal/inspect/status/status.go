// Package status reads the health of a cluster's peerings from the objects in the cluster (package inventory) and the
// thresholds of package health: once, at every change, and from both clusters of a peering. It changes nothing.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/progress"
)

// Read returns the health of a cluster's peerings: what Of returns for what it reads of them. If a report is late by
// the clocks, which may differ, Read waits for its successor.
func Read(ctx context.Context, o Options) ([]Peering, error) {
	snapshots := read.All(ctx, o.clusters(), Parts()...)
	if err := Complete(ctx, o, snapshots); err != nil {
		return nil, err
	}
	return Of(o.Peer, snapshots...)
}

// Of returns the health of the peerings in what was read of a cluster, sorted by name: all of them, or the selected
// one. Of two clusters it returns their peering as the first one observes it, then as the second one does. A peering
// with damaged or missing records is listed too.
func Of(peer string, snapshots ...*observe.Snapshot) ([]Peering, error) {
	views, err := viewsOf(peer, snapshots)
	if err != nil {
		return nil, err
	}
	all := []Peering{} // not nil: no peerings is a valid answer
	for _, v := range views {
		one, err := v.describe()
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// Complete reads what Of needs beyond Parts: where there are no peerings, installations in other namespaces; where a
// gateway is missed, pods. If a report is late by the clocks, which may differ, Complete waits for its successor, and
// reads what was read of the cluster again. Only the end of the context is an error: others are those of Of.
func Complete(ctx context.Context, o Options, snapshots []*observe.Snapshot) error {
	for begun := time.Now(); ; {
		o.fill(ctx, snapshots)
		views, err := viewsOf(o.Peer, snapshots)
		if ctx.Err() != nil || err != nil || !slices.ContainsFunc(views, func(v *view) bool { return v.awaitSuccessor(time.Since(begun)) }) {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
		o.each(func(i int, c *kube.Cluster) {
			parts := Parts()
			if !errors.Is(snapshots[i].Errors[observe.Pods], observe.ErrNotRead) {
				parts = append(parts, observe.Pods)
			}
			read.Again(ctx, c, snapshots[i], parts...)
		})
	}
}

// each calls f for each cluster, all at once.
func (o Options) each(f func(i int, c *kube.Cluster)) {
	var all sync.WaitGroup
	for i, c := range o.clusters() {
		all.Go(func() { f(i, c) })
	}
	all.Wait()
}

// fill reads what the peerings need beyond Parts.
func (o Options) fill(ctx context.Context, snapshots []*observe.Snapshot) {
	o.each(func(i int, c *kube.Cluster) {
		s, needed := snapshots[i], observe.Pods
		v, err := viewOf(s)
		switch {
		case s.Errors[observe.Server] != nil, s.Errors[observe.Records] != nil:
			return
		case len(s.Peerings) == 0:
			needed = observe.Elsewhere
		case err != nil || !v.missesGateway():
			return
		}
		if errors.Is(s.Errors[needed], observe.ErrNotRead) {
			read.Again(ctx, c, s, needed)
		}
	})
}

// viewsOf returns the selected peerings.
func viewsOf(peer string, snapshots []*observe.Snapshot) ([]*view, error) {
	views := make([]*view, len(snapshots))
	for i, s := range snapshots {
		var err error
		if views[i], err = viewOf(s); err != nil {
			return nil, err
		}
	}
	return views, selectPeerings(peer, views)
}

// selectPeerings keeps the selected peerings: all, the one with a name, or the one between two clusters.
func selectPeerings(peer string, sides []*view) error {
	if len(sides) == 2 {
		return chooseCommon(peer, sides[0], sides[1])
	}
	if s := sides[0]; peer != "" {
		if s.peerings[peer] == nil {
			return &inventory.NoPeeringError{Context: s.Context, Name: peer, Known: s.names()}
		}
		s.choose(peer)
	}
	return nil
}

// chooseCommon keeps the peering of two clusters. If only one of them has it, it is listed as down in the other.
func chooseCommon(peer string, local, remote *view) error {
	for _, s := range []*view{local, remote} {
		if s.Fabric == nil {
			return fmt.Errorf("find the peering in cluster %q: %s", s.Context, health.Reason(s.shared(), 0))
		}
	}
	if local.Fabric.ClusterID == remote.Fabric.ClusterID {
		return progress.SameCluster(local.Context, remote.Context)
	}
	localName, remoteName := local.PeeringWith(*remote.Fabric), remote.PeeringWith(*local.Fabric)
	if localName == "" && remoteName == "" || peer != "" && peer != cmp.Or(localName, remote.Fabric.Name) {
		return &inventory.NoPeeringError{Context: local.Context, Name: cmp.Or(peer, remote.Fabric.Name), Known: local.names()}
	}
	local.chooseOrMiss(localName, remote.Fabric.Name)
	remote.chooseOrMiss(remoteName, local.Fabric.Name)
	return nil
}

// Options are the options of Read and Watch.
type Options struct {
	Cluster *kube.Cluster
	Remote  *kube.Cluster // nil: the local cluster alone
	Peer    string        // "": all peerings, or that with Remote
}

func (o Options) clusters() []*kube.Cluster {
	if o.Remote == nil {
		return []*kube.Cluster{o.Cluster}
	}
	return []*kube.Cluster{o.Cluster, o.Remote}
}
