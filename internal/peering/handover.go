package peering

import (
	"context"
	"fmt"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// handOverTime is what second gateways add to the time limit: four gateways start and end one after the other, some 15
// seconds each.
const handOverTime = 2 * time.Minute

// handOver prepares the gateways. Where the only one of a cluster is replaced, a second one carries its packets
// meanwhile. It is temporary: configure removes it. Where it carries none in time, because nodes have no room for it or
// its port is closed, the peering is interrupted until the new pod runs.
func (c *connector) handOver(ctx context.Context) (string, error) {
	if !c.replacesOnly() || !c.carries(ctx) {
		return c.prepare(ctx)
	}
	if err := c.replaceBeside(ctx); err != nil && ctx.Err() == nil {
		c.reporter.Note(err.Error())
	}
	// What stands is other than it was compared. The user knows all remarks about it by now.
	for _, e := range c.ends() {
		defer func(r progress.Reporter) { e.reporter = r }(e.reporter)
		e.reporter = progress.Quiet{}
	}
	if _, err := c.discover(ctx); err != nil {
		return "", err
	}
	return c.prepare(ctx)
}

// replacesOnly reports whether the only gateway of a cluster is about to be replaced. Beside one whose port the user
// chose, nothing says which port a second one would be reached at.
func (c *connector) replacesOnly() bool {
	none := func(e *end) bool { return e.have == nil }
	return c.server().settings.EndpointPort == 0 && !slices.ContainsFunc(c.ends(), none) && slices.ContainsFunc(c.ends(), func(e *end) bool {
		if e.count() > 1 || !e.stands(0) || e.stands(1) {
			return false
		}
		name := e.gatewayIDs()[0].Name()
		plan := c.plan.Clusters[slices.Index(c.ends(), e)]
		return slices.ContainsFunc(plan.Changes, func(change kube.Change) bool {
			return change.Kind == "Deployment" && change.Name == name && change.Action == kube.Changed
		})
	})
}

// carries reports whether packets cross: else replacing the gateway interrupts nothing.
func (c *connector) carries(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, looksTime)
	defer cancel()
	return !slices.ContainsFunc(c.ends(), func(e *end) bool { return !e.awaitCarrying(bounded, e.gatewayIDs()[0], false) })
}

// replaceBeside starts second gateways as the first ones are, and then replaces these.
func (c *connector) replaceBeside(ctx context.Context) error {
	c.reporter.Note("starting second gateways, which carry the packets while the only ones are replaced")
	t := newRotation(RotateOptions{Local: c.local.cluster, Remote: c.remote.cluster, SkipValidation: true}, progress.Quiet{})
	t.update = true
	err := t.addSecond(ctx)
	c.local.changes = append(c.local.changes, t.result.Objects...) // of both clusters
	if err != nil {
		return fmt.Errorf("no second gateway carries packets while the only one is replaced: %w", err)
	}
	c.reporter.Note(fmt.Sprintf("second gateways carry packets: replacing those of %s and %s", c.local.name, c.remote.name))
	next := newConnector(c.options, progress.Quiet{})
	for _, e := range next.ends() {
		e.options.SkipValidation, e.spare = true, true
	}
	for _, do := range []func(context.Context) (string, error){next.reach, next.discover} {
		if _, err := do(ctx); err != nil {
			return err
		}
	}
	_, err = t.converge(ctx, next)
	for i, e := range c.ends() {
		e.changes = append(e.changes, next.ends()[i].changes...)
	}
	if err != nil {
		return fmt.Errorf("replace gateways while second ones carry packets: %w", err)
	}
	return nil
}

// addSecond starts second gateways beside those that stand.
func (t *rotation) addSecond(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	c, err := t.connector(bounded, true)
	if err != nil {
		return err
	}
	_, err = t.add(bounded, c)
	return err
}
