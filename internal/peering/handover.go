package peering

import (
	"context"
	"fmt"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// handOverTime is added to the time limit for second gateways: four gateways start and stop one after the other, in
// about 15 seconds each.
const handOverTime = 2 * time.Minute

// handOver prepares the gateways. If a cluster's only gateway is replaced, a temporary second one carries its packets
// meanwhile; configure removes it. If the second gateway carries no packets in time, because no node has room for it or
// its port is closed, the peering is interrupted until the new pod runs.
func (c *connector) handOver(ctx context.Context) (string, error) {
	if !c.replacesOnly() || !c.packetsCross(ctx) {
		return c.prepare(ctx)
	}
	if err := c.replaceGateways(ctx); err != nil && ctx.Err() == nil {
		c.reporter.Note(err.Error())
	}
	// The clusters have changed since the comparison. The user has seen all notes about them already.
	for _, m := range c.members() {
		defer func(r progress.Reporter) { m.reporter = r }(m.reporter)
		m.reporter = progress.Quiet{}
	}
	if _, err := c.discover(ctx); err != nil {
		return "", err
	}
	return c.prepare(ctx)
}

// replacesOnly reports whether a cluster's only gateway will be replaced. It is false if the user has set
// --gw-client-port, as the port of a second gateway is not known then.
func (c *connector) replacesOnly() bool {
	none := func(m *member) bool { return m.have == nil }
	return c.link == nil && *c.local.settings.Complete().EndpointPort == 0 && !slices.ContainsFunc(c.members(), none) && slices.ContainsFunc(c.members(), func(m *member) bool {
		if m.gatewayCount() > 1 || !m.hasGateway(0) || m.hasGateway(1) || m.rekeyed(0) {
			return false
		}
		name := m.gatewayIDs()[0].Name()
		plan := c.plan.Clusters[slices.Index(c.members(), m)]
		return slices.ContainsFunc(plan.Changes, func(change kube.Change) bool {
			return change.Kind == "Deployment" && change.Name == name && change.Action == kube.Changed
		})
	})
}

// packetsCross reports whether packets cross. If they do not, replacing the gateway interrupts nothing.
func (c *connector) packetsCross(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	return !slices.ContainsFunc(c.members(), func(m *member) bool { return !m.awaitCarrying(bounded, m.gatewayIDs()[0], false) })
}

// replaceGateways starts second gateways from the existing configuration, and then replaces the first ones.
func (c *connector) replaceGateways(ctx context.Context) error {
	c.reporter.Note("starting second gateways, which carry the packets while the only ones are replaced")
	t := newRotation(RotateOptions{Local: c.local.cluster, Remote: c.remote.cluster}, progress.Quiet{})
	t.update, t.checked = true, true
	bounded, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	_, err := t.prepare(bounded)
	c.local.changes = append(c.local.changes, t.result.Objects...) // of both clusters
	if err != nil {
		return fmt.Errorf("no second gateway carries packets while the only one is replaced: %w", err)
	}
	c.reporter.Note(fmt.Sprintf("second gateways carry packets: replacing those of %s and %s", c.local.name, c.remote.name))
	next := newConnector(c.options, progress.Quiet{})
	for _, m := range next.members() {
		m.installed, m.options.SkipValidation, m.wanted.Spare = true, true, true
	}
	if err := inOrder(ctx, next.reach, next.discover); err != nil {
		return err
	}
	_, err = t.converge(ctx, next)
	for i, m := range c.members() {
		m.changes = append(m.changes, next.members()[i].changes...)
	}
	if err != nil {
		return fmt.Errorf("replace gateways while second ones carry packets: %w", err)
	}
	return nil
}
