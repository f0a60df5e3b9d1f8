package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/records"
)

// measureTime limits how long gateways and nodes may take to measure their hops after the tunnel works. A narrow hop
// takes some seconds.
const measureTime = 20 * time.Second

// measure waits for the helpers' measurements of the hops, and rewrites both records if a hop is narrower than the
// links. If nothing changed, earlier measurements are still valid. If the MTU falls, larger packets that crossed before
// are sufficient for verification.
func (c *connector) measure(ctx context.Context) error {
	if c.changed() {
		if err := c.both(ctx, (*member).measure); err != nil {
			return err
		}
	}
	if err := c.exchange(ctx); err != nil {
		return err
	}
	c.members()[0].warnMTU()
	return c.both(ctx, func(m *member, ctx context.Context) error {
		mtu := m.half().FittingMTU(m.written)
		if m.settings.MTU != nil || mtu == 0 || mtu == m.written.MTU {
			return nil
		}
		narrower := *m.written
		narrower.MTU = mtu
		return m.write(ctx, narrower)
	})
}

// measure waits for the gateways' reports of all hops. A hop that cannot be measured is a warning.
func (m *member) measure(ctx context.Context) error {
	all, err := forEach(ctx, m.gatewayIDs(), m.measureGateway)
	if m.sizes = desired.MergeSizes(all); err != nil {
		return err
	}
	if unknown := append(m.sizes.Unmeasured, m.sizes.Failed...); len(unknown) > 0 {
		m.reporter.Warn(fmt.Sprintf("cluster %q: path MTU unknown %s", m.cluster.Context, strings.Join(unknown, ", ")),
			"where less passes than on the nodes' links, use --mtu")
	}
	return nil
}

// measureGateway waits for the hop sizes in the status of one gateway.
func (m *member) measureGateway(ctx context.Context, id records.GatewayID) (sizes desired.Sizes, err error) {
	what := fmt.Sprintf("packets to cross from cluster %q", m.cluster.Context)
	var last *records.Status
	if err := inventory.AwaitStatus(ctx, m.cluster, id, what, func(s *records.Status) string {
		last = s
		return health.TunnelMissing(s)
	}); err != nil {
		return sizes, m.silence(err, last)
	}
	bounded, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	err = inventory.AwaitStatus(bounded, m.cluster, id, what, func(s *records.Status) string {
		sizes = desired.SizesOf(s, m.nodes.allReady())
		readyReports := slices.DeleteFunc(m.nodes.expected(), func(name string) bool { return !m.hasReport(name) })
		return strings.Join(desired.SizesOf(s, readyReports).Unmeasured, ", ")
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return sizes, err
	}
	return sizes, nil
}

// warnMTU warns if the user's MTU exceeds that of a hop.
func (m *member) warnMTU() {
	all := desired.Hops(m.offer(), m.peer)
	least, mtu := desired.Narrowest(all), *m.settings.Complete().MTU
	if least == 0 || mtu <= least {
		return
	}
	var narrow []string
	for _, h := range all {
		if h.Fits > 0 && h.Fits < mtu {
			narrow = append(narrow, fmt.Sprintf("%s %d", h.Name, h.Size))
		}
	}
	m.reporter.Warn(fmt.Sprintf("MTU %d exceeds the path MTU: %s", mtu, strings.Join(narrow, ", ")), "use --mtu "+strconv.Itoa(least)+" or less")
}
