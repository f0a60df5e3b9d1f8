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

// rollBack removes what did not exist in this cluster before a failed connect: the peering, and the installation unless
// it has objects of another peering. Objects that existed, even incomplete ones, are kept, as they may carry packets.
func (m *member) rollBack(ctx context.Context) error {
	if m.creating && !m.remains {
		if err := removal.Peering(ctx, m.cluster, m.peering, m.reporter); err != nil {
			return err
		}
	}
	if !m.installing {
		return nil
	}
	left, err := inventory.Traces(ctx, m.cluster)
	if err != nil {
		return err
	}
	if m.installing = len(left) == 0; !m.installing {
		return nil
	}
	return removal.Installation(ctx, m.cluster, m.reporter)
}

// rollBack removes what a failed or interrupted run has created; cause is its error.
func (c *connector) rollBack(ctx context.Context, cause error) {
	made := c.writing && slices.ContainsFunc(c.members(), func(m *member) bool { return m.cluster.Writes() && (m.installing || m.creating) })
	switch {
	case !made:
		return
	case c.options.Keep:
		c.reporter.Note("not rolled back (--no-rollback); to remove what was created: liqoctl network disconnect, liqoctl network reset")
		return
	}
	rest, cancel := progress.Afterwards(ctx)
	defer cancel()
	if errors.Is(cause, context.Canceled) {
		cause = errInterrupted
	}
	c.reporter.Note("rolling back: " + cause.Error())
	err := progress.EachOf(c.members(), func(m *member) error {
		err := progress.Persist(rest, m.rollBack)
		if err == nil {
			c.reporter.Note(m.rollbackSummary())
		}
		return err
	})
	if err != nil && c.local.cluster.Writes() { // else another run may be writing, which a rollback must not disturb
		c.reporter.Warn("rollback is incomplete: "+err.Error(), "liqoctl network disconnect, then liqoctl network reset")
	}
}

var errInterrupted = errors.New("interrupted")

// rollbackSummary describes what a rollback has removed.
func (m *member) rollbackSummary() string {
	var removed []string
	if m.creating && !m.remains {
		removed = append(removed, fmt.Sprintf("peering %q", m.peering))
	}
	if m.installing {
		removed = append(removed, "the installation")
	}
	switch {
	case len(removed) == 0 && m.remains:
		return fmt.Sprintf("cluster %q: peering %q stays, as an earlier run had begun it: connect again, or remove it with liqoctl network disconnect",
			m.cluster.Context, m.peering)
	case len(removed) == 0:
		return fmt.Sprintf("cluster %q: nothing to roll back", m.cluster.Context)
	}
	return fmt.Sprintf("cluster %q: rolled back, removed %s", m.cluster.Context, strings.Join(removed, " and "))
}
