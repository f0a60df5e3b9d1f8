package peering

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// watchEvery is how often Watch looks without being told: a report that stays out is no event.
const watchEvery = 5 * time.Second

// Watch tells how the peerings of a cluster do, at once and after every report, until ctx ends, which is no
// error.
func Watch(ctx context.Context, o StatusOptions, show func([]PeeringStatus) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	followed := make(chan error, 1)
	go func() { followed <- follow(inner, o.Side.Cluster, changed) }()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		all, err := Status(ctx, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show(all); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-followed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-changed:
		case <-tick.C:
		}
	}
}

// follow sends for every change of a peering or a report, several at once as one, until ctx ends.
func follow(ctx context.Context, c *cluster.Cluster, changed chan<- struct{}) error {
	components := records.LabelComponent + " in (" + records.ComponentPeering + "," + records.ComponentStatus + ")"
	return cluster.Wait(ctx, c, cluster.Labelled(components), "the end of the watch", func([]*corev1.ConfigMap) (string, error) {
		select {
		case changed <- struct{}{}:
		default:
		}
		return "watching", nil
	})
}
