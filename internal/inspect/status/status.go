// Package status reads the health of a cluster's peerings from the objects in the cluster (package inventory) and the
// thresholds of package health: once, at every change, and from both clusters of a peering. It changes nothing.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Read returns the health of a cluster's peerings, sorted by name: all of them, or the selected one. With a remote
// cluster it returns their peering as the local cluster observes it, then as the remote one does. A peering with
// damaged or missing records is listed too. If a report is late by the clocks, which may differ, Read waits for its
// successor.
func Read(ctx context.Context, o Options) ([]Peering, error) {
	seen := make(sightings)
	for begun := time.Now(); ; {
		all, err := look(ctx, o, seen)
		if err != nil || !slices.ContainsFunc(all, func(p Peering) bool { return seen.awaitsSuccessor(p, time.Since(begun)) }) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// look is Read without that wait; seen has the earlier observations of reports.
func look(ctx context.Context, o Options, seen sightings) ([]Peering, error) {
	clusters := o.clusters()
	sides := make([]*snapshot, len(clusters))
	group, inner := errgroup.WithContext(ctx)
	for i, c := range clusters {
		group.Go(func() (err error) {
			sides[i], err = takeSnapshot(inner, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := o.choose(sides); err != nil {
		return nil, err
	}
	group, inner = errgroup.WithContext(ctx)
	for _, s := range sides {
		group.Go(func() error {
			if err := s.compare(inner); err != nil {
				return err
			}
			return s.readProblems(inner)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := []Peering{} // not nil: no peerings is a valid answer
	for _, s := range sides {
		all = append(all, s.describe(seen)...)
	}
	return all, nil
}

// choose keeps the selected peerings: all, the one with a name, or the one between two clusters.
func (o Options) choose(sides []*snapshot) error {
	if len(sides) == 2 {
		return o.chooseCommon(sides[0], sides[1])
	}
	if s := sides[0]; o.Peer != "" {
		if s.peerings[o.Peer] == nil {
			return &inventory.NoPeeringError{Context: s.cluster.Context, Name: o.Peer, Known: s.names()}
		}
		s.choose(o.Peer)
	}
	return nil
}

// chooseCommon keeps the peering of two clusters. If only one of them has it, it is listed as down in the other.
func (o Options) chooseCommon(local, remote *snapshot) error {
	for _, s := range []*snapshot{local, remote} {
		if s.fabric == nil {
			return fmt.Errorf("find the peering in cluster %q: %s", s.cluster.Context, strings.Join(s.altered, "; "))
		}
	}
	if local.fabric.ClusterID == remote.fabric.ClusterID {
		return progress.SameCluster(local.cluster, remote.cluster)
	}
	localName, remoteName := local.peeringWith(*remote.fabric), remote.peeringWith(*local.fabric)
	if localName == "" && remoteName == "" || o.Peer != "" && o.Peer != cmp.Or(localName, remote.fabric.Name) {
		return &inventory.NoPeeringError{Context: local.cluster.Context, Name: cmp.Or(o.Peer, remote.fabric.Name), Known: local.names()}
	}
	local.chooseOrMiss(localName, remote.fabric.Name)
	remote.chooseOrMiss(remoteName, local.fabric.Name)
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
