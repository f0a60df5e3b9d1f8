// Package status reads the health of a cluster's peerings from the objects in the cluster (package inventory) and the
// thresholds of package health: once, at every change, and from both clusters of a peering. It changes nothing.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/progress"
)

// Read returns the health of a cluster's peerings, sorted by name: all of them, or the selected one. With a remote
// cluster it returns their peering as the local cluster observes it, then as the remote one does. A peering with
// damaged or missing records is listed too. If a report is late by the clocks, which may differ, Read waits for its
// successor.
func Read(ctx context.Context, o Options) ([]Peering, error) {
	return Of(ctx, o, read.All(ctx, o.clusters(), Parts()...))
}

// Of is Read for what was read of the clusters already. It reads the parts that it needs again while it waits for a
// report.
func Of(ctx context.Context, o Options, snapshots []*observe.Snapshot) ([]Peering, error) {
	seen := make(sightings)
	for begun := time.Now(); ; {
		all, err := o.look(ctx, snapshots, seen)
		if err != nil || !slices.ContainsFunc(all, func(p Peering) bool { return seen.awaitsSuccessor(p, time.Since(begun)) }) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollInterval):
		}
		_ = o.each(func(i int, c *kube.Cluster) error {
			parts := Parts()
			if !errors.Is(snapshots[i].Errors[observe.Pods], observe.ErrNotRead) {
				parts = append(parts, observe.Pods)
			}
			read.Again(ctx, c, snapshots[i], parts...)
			return nil
		})
	}
}

// each calls f for each cluster, all at once, and returns the first error.
func (o Options) each(f func(i int, c *kube.Cluster) error) error {
	var group errgroup.Group
	for i, c := range o.clusters() {
		group.Go(func() error { return f(i, c) })
	}
	return group.Wait()
}

// look is Of without that wait; seen has the earlier observations of reports.
func (o Options) look(ctx context.Context, snapshots []*observe.Snapshot, seen sightings) ([]Peering, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sides := make([]*view, len(snapshots))
	err := o.each(func(i int, c *kube.Cluster) (err error) {
		sides[i], err = viewOf(ctx, c, snapshots[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := o.choose(sides); err != nil {
		return nil, err
	}
	if err := o.each(func(i int, _ *kube.Cluster) error { return sides[i].readProblems(ctx) }); err != nil {
		return nil, err
	}
	all := []Peering{} // not nil: no peerings is a valid answer
	for _, v := range sides {
		all = append(all, v.describe(seen)...)
	}
	return all, nil
}

// choose keeps the selected peerings: all, the one with a name, or the one between two clusters.
func (o Options) choose(sides []*view) error {
	if len(sides) == 2 {
		return o.chooseCommon(sides[0], sides[1])
	}
	if s := sides[0]; o.Peer != "" {
		if s.peerings[o.Peer] == nil {
			return &inventory.NoPeeringError{Context: s.Context, Name: o.Peer, Known: s.names()}
		}
		s.choose(o.Peer)
	}
	return nil
}

// chooseCommon keeps the peering of two clusters. If only one of them has it, it is listed as down in the other.
func (o Options) chooseCommon(local, remote *view) error {
	for _, s := range []*view{local, remote} {
		if s.Fabric == nil {
			return fmt.Errorf("find the peering in cluster %q: %s", s.Context, strings.Join(s.altered, "; "))
		}
	}
	if local.Fabric.ClusterID == remote.Fabric.ClusterID {
		return progress.SameCluster(local.cluster, remote.cluster)
	}
	localName, remoteName := local.PeeringWith(*remote.Fabric), remote.PeeringWith(*local.Fabric)
	if localName == "" && remoteName == "" || o.Peer != "" && o.Peer != cmp.Or(localName, remote.Fabric.Name) {
		return &inventory.NoPeeringError{Context: local.Context, Name: cmp.Or(o.Peer, remote.Fabric.Name), Known: local.names()}
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
