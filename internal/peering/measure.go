package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// measureTime is how long gateways and nodes may take to measure their hops once the tunnel works: some seconds
// where a hop is narrow.
const measureTime = 20 * time.Second

// measure waits for what the helpers measure of the hops, and writes both documents anew where one is narrower than
// the links. Where nothing changed, what was known before still counts. Where the MTU falls, larger packets
// that crossed before are proof, too.
func (c *connector) measure(ctx context.Context) error {
	if len(c.local.changes)+len(c.remote.changes) > 0 {
		if err := c.both(ctx, (*end).measure); err != nil {
			return err
		}
	}
	c.warnMTU()
	return c.both(ctx, func(e *end, ctx context.Context) error {
		mtu := e.fittingMTU(e.written)
		if e.settings.MTU != 0 || mtu == 0 || mtu == e.written.MTU {
			return nil
		}
		narrower := *e.written
		narrower.MTU = mtu
		return e.write(ctx, narrower)
	})
}

// measure waits for the gateways' reports of all hops. That some cannot be measured is no error.
func (e *end) measure(ctx context.Context) error {
	ids := e.gatewayIDs()
	all := make([]hopSizes, len(ids))
	group, inner := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			all[i], err = e.measureBy(inner, id)
			return err
		})
	}
	err := group.Wait()
	if e.sizes = narrowestOf(all); err != nil {
		return err
	}
	if unknown := append(e.sizes.unasked, e.sizes.silent...); len(unknown) > 0 {
		e.reporter.Warn(fmt.Sprintf("cluster %q: path MTU unknown %s", e.cluster.Context, strings.Join(unknown, ", ")),
			"where less passes than on the nodes' links, use --mtu")
	}
	return nil
}

// measureBy waits for the report of one gateway.
func (e *end) measureBy(ctx context.Context, id records.GatewayID) (sizes hopSizes, err error) {
	what := fmt.Sprintf("packets to cross from cluster %q", e.cluster.Context)
	if err := inventory.AwaitStatus(ctx, e.cluster, id, what, health.TunnelMissing); err != nil {
		return sizes, err
	}
	bounded, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	err = inventory.AwaitStatus(bounded, e.cluster, id, what, func(s *records.Status) string {
		sizes = sizesIn(s, e.nodes.all())
		reporting := slices.DeleteFunc(e.nodes.awaited(), func(name string) bool { return !e.reports(name) })
		return strings.Join(sizesIn(s, reporting).unasked, ", ")
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return sizes, err
	}
	return sizes, nil
}

// warnMTU says so when the user wants packets that do not fit.
func (c *connector) warnMTU() {
	all := hops(c.local, c.remote)
	least, mtu := narrowest(all), c.local.settings.MTU
	if least == 0 || mtu <= least {
		return
	}
	var narrow []string
	for _, h := range all {
		if h.Fits > 0 && h.Fits < mtu {
			narrow = append(narrow, fmt.Sprintf("%s %d", h.Name, h.Size))
		}
	}
	c.reporter.Warn(fmt.Sprintf("MTU %d exceeds the path MTU: %s", mtu, strings.Join(narrow, ", ")), "use --mtu "+strconv.Itoa(least)+" or less")
}
