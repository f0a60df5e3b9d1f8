package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// undo removes what a failed connect made at this end: the peering, and the installation unless others use it
// by now. What another run made, or completed, at the same time stays.
func (e *end) undo(ctx context.Context) error {
	if e.joining {
		others, err := inventory.OfOthers(ctx, e.cluster, records.PeeringName(e.peering), e.run)
		if err != nil {
			return err
		}
		e.joining = !others
	}
	if e.joining {
		if err := removal.Peering(ctx, e.cluster, e.peering, e.reporter); err != nil {
			return err
		}
	}
	if !e.installing {
		return nil
	}
	others, err := inventory.OfOthers(ctx, e.cluster, records.FabricName, e.run)
	if err != nil {
		return err
	}
	left, err := inventory.Traces(ctx, e.cluster)
	if err != nil {
		return err
	}
	if e.installing = !others && len(left) == 0; !e.installing {
		return nil
	}
	return removal.Installation(ctx, e.cluster, e.reporter)
}

// fail undoes what a run made that failed or was interrupted by that cause.
func (c *connector) fail(ctx context.Context, cause error) {
	made := slices.ContainsFunc(c.ends(), func(e *end) bool { return e.cluster.Writes() && (e.installing || e.joining || e.shared) })
	switch {
	case !made:
		return
	case c.options.Keep:
		c.reporter.Note("not rolled back (--keep); to remove what was created: liqoctl network disconnect, liqoctl network reset")
		return
	}
	rest, cancel := progress.Afterwards(ctx)
	defer cancel()
	if errors.Is(cause, context.Canceled) {
		cause = errInterrupted
	}
	c.reporter.Note("rolling back: " + cause.Error())
	err := progress.EachOf(c.ends(), func(e *end) error {
		err := progress.Persist(rest, e.undo)
		if err == nil {
			c.reporter.Note(e.undone())
		}
		return err
	})
	if err != nil && !errors.Is(err, cluster.ErrLockLost) { // the run's own error tells of a lost lock
		c.reporter.Warn("rollback is incomplete: "+err.Error(), "liqoctl network disconnect, then liqoctl network reset")
	}
}

var errInterrupted = errors.New("interrupted")

// undone says what a rollback has removed.
func (e *end) undone() string {
	var removed []string
	if e.joining {
		removed = append(removed, fmt.Sprintf("peering %q", e.peering))
	}
	if e.installing {
		removed = append(removed, "the installation")
	}
	switch {
	case len(removed) == 0 && e.shared:
		return fmt.Sprintf("cluster %q: peering %q stays, as another run makes it, or has begun it: connect again, or remove it with liqoctl network disconnect",
			e.cluster.Context, e.peering)
	case len(removed) == 0:
		return fmt.Sprintf("cluster %q: nothing to roll back", e.cluster.Context)
	}
	return fmt.Sprintf("cluster %q: rolled back, removed %s", e.cluster.Context, strings.Join(removed, " and "))
}
