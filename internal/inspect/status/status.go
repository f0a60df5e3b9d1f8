// Package status tells how the peerings of a cluster do, from what the cluster holds (package inventory) and by the
// verdict of package health: once, at every change, and as the two clusters of a peering see it. It changes nothing.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/progress"
)

// Read returns the health of a cluster's peerings, sorted by name: all of them, or the one that is asked for. With a
// remote cluster it returns their peering as the local cluster sees it, then as the remote one does. One of which
// records are damaged or missing is listed beside the others. A report that is late by the clocks, which may differ,
// gets the time to be followed by another.
func Read(ctx context.Context, o Options) ([]Peering, error) {
	seen := make(sightings)
	for begun := time.Now(); ; {
		all, err := look(ctx, o, seen)
		if err != nil || !slices.ContainsFunc(all, func(p Peering) bool { return seen.mayFollow(p, time.Since(begun)) }) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// look is Status without that time; seen is what was seen of the reports before.
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
	all := []Peering{} // none is an answer
	for _, s := range sides {
		all = append(all, s.describe(seen)...)
	}
	return all, nil
}

// choose leaves the peerings that are asked for: all, that of a name, or that of the two clusters.
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

// chooseCommon leaves the peering of two clusters. A cluster that does not have it, while the other does, has it listed
// as down.
func (o Options) chooseCommon(local, remote *snapshot) error {
	for _, s := range []*snapshot{local, remote} {
		if s.fabric == nil {
			return fmt.Errorf("find the peering in cluster %q: %s", s.cluster.Context, strings.Join(s.altered, "; "))
		}
	}
	if local.fabric.ClusterID == remote.fabric.ClusterID {
		return progress.SameCluster(local.cluster, remote.cluster)
	}
	here, there := local.peeringWith(*remote.fabric), remote.peeringWith(*local.fabric)
	if here == "" && there == "" || o.Peer != "" && o.Peer != cmp.Or(here, remote.fabric.Name) {
		return &inventory.NoPeeringError{Context: local.cluster.Context, Name: cmp.Or(o.Peer, remote.fabric.Name), Known: local.names()}
	}
	local.chooseOrMiss(here, remote.fabric.Name)
	remote.chooseOrMiss(there, local.fabric.Name)
	return nil
}

// Options are the options of Status and Watch.
type Options struct {
	Cluster *cluster.Cluster
	Remote  *cluster.Cluster // nil: the local cluster alone
	Peer    string           // "": all peerings, or that with Remote
}

func (o Options) clusters() []*cluster.Cluster {
	if o.Remote == nil {
		return []*cluster.Cluster{o.Cluster}
	}
	return []*cluster.Cluster{o.Cluster, o.Remote}
}
