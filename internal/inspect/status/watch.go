package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/records"
)

// WatchEvery is how often Watch looks although nothing it follows has changed, at least; and when a report is late.
const WatchEvery = 5 * time.Second

// Watch shows what Status returns, at once and after every report, until ctx ends, which is no error. Once it has begun
// it goes on where a cluster does not answer for a while, and calls lost with the reason: once until it answers again.
func Watch(ctx context.Context, o Options, show func([]Peering) error, lost func(error)) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	followed := make(chan error, 1)
	go func() { followed <- follow(inner, o.clusters(), changed) }()
	begun, away := false, false
	var snapshots []*observe.Snapshot
	for _, c := range o.clusters() {
		snapshots = append(snapshots, read.Nothing(c))
	}
	for {
		all, err := o.look(ctx, snapshots)
		if err == nil {
			err = show(all)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			begun, away = true, false
		case !begun || !unanswered(err):
			return err
		case !away:
			away = true
			lost(err)
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
		case <-time.After(untilLate(snapshots, WatchEvery)):
		}
	}
}

// look reads clusters again. Pods of the look before do not count.
func (o Options) look(ctx context.Context, snapshots []*observe.Snapshot) ([]Peering, error) {
	o.each(func(i int, c *kube.Cluster) {
		snapshots[i].Errors[observe.Pods], snapshots[i].Errors[observe.Elsewhere] = observe.ErrNotRead, observe.ErrNotRead
		read.Again(ctx, c, snapshots[i], Parts()...)
	})
	o.fill(ctx, snapshots)
	return Of(o.Peer, snapshots...)
}

// unanswered reports whether an API server did not answer, or was not ready to.
func unanswered(err error) bool {
	if kube.Lost(err) || errors.Is(err, context.DeadlineExceeded) { // the latter is that of a single request
		return true
	}
	_, unreached := errors.AsType[*kube.ReachError](err)
	return unreached && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

// follow sends for every change of a peering, a gateway's report or a node's, several at once as one, until ctx ends.
// Without permission to watch nodes' reports it continues with the gateways'.
func follow(ctx context.Context, clusters []*kube.Cluster, changed chan<- struct{}) error {
	components := records.LabelComponent + " in (" + records.ComponentPeering + "," + records.ComponentStatus + ")"
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range clusters {
		group.Go(func() error { return followKind[*corev1.ConfigMap](ctx, c, components, changed) })
		group.Go(func() error {
			err := followKind[*coordinationv1.Lease](ctx, c, inventory.Selector(records.ComponentNode), changed)
			if apierrors.IsForbidden(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// followKind is follow for objects of one kind.
func followKind[T kube.Object](ctx context.Context, c *kube.Cluster, selector string, changed chan<- struct{}) error {
	var last error
	for _, last = range kube.Watch[T](ctx, c, kube.Labelled(selector)) {
		if last != nil {
			continue
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("watch cluster %q: %w", c.Context, last)
}
