package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
)

// undo removes what this end lacked before a connect that failed: the peering, and the installation unless anything of
// another peering is there. What existed, if only in part, stays: it may be what carries packets.
func (e *end) undo(ctx context.Context) error {
	if e.joining && !e.remains {
		if err := removal.Peering(ctx, e.cluster, e.peering, e.reporter); err != nil {
			return err
		}
	}
	if !e.installing {
		return nil
	}
	left, err := inventory.Traces(ctx, e.cluster)
	if err != nil {
		return err
	}
	if e.installing = len(left) == 0; !e.installing {
		return nil
	}
	return removal.Installation(ctx, e.cluster, e.reporter)
}

// fail undoes what a run made that failed or was interrupted by that cause.
func (c *connector) fail(ctx context.Context, cause error) {
	made := c.writing && slices.ContainsFunc(c.ends(), func(e *end) bool { return e.cluster.Writes() && (e.installing || e.joining) })
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
	if err != nil && c.local.cluster.Writes() { // else another run may write by now, and it is not undone under it
		c.reporter.Warn("rollback is incomplete: "+err.Error(), "liqoctl network disconnect, then liqoctl network reset")
	}
}

var errInterrupted = errors.New("interrupted")

// undone says what a rollback has removed.
func (e *end) undone() string {
	var removed []string
	if e.joining && !e.remains {
		removed = append(removed, fmt.Sprintf("peering %q", e.peering))
	}
	if e.installing {
		removed = append(removed, "the installation")
	}
	switch {
	case len(removed) == 0 && e.remains:
		return fmt.Sprintf("cluster %q: peering %q stays, as an earlier run had begun it: connect again, or remove it with liqoctl network disconnect",
			e.cluster.Context, e.peering)
	case len(removed) == 0:
		return fmt.Sprintf("cluster %q: nothing to roll back", e.cluster.Context)
	}
	return fmt.Sprintf("cluster %q: rolled back, removed %s", e.cluster.Context, strings.Join(removed, " and "))
}
