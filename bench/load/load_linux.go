// Package load sends traffic from one network namespace to another and measures what arrives. Both ends are in this
// process: they share one clock, and the sender knows what has arrived.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// Way is where traffic goes.
type Way struct {
	From, To netns.Handle
	Address  netip.Addr // of To, as From calls it; IPv4
	// Processes carry the packets, beside the kernel.
	Processes []int
}

// Rate is how much arrives, in units of what is sent.
type Rate struct {
	PerSecond float64
	Processor time.Duration // of all processors together, for each unit
}

// warmUp is the part of a measurement, at its beginning, that does not count: connections find their speed.
const warmUp = 0.2

// patience is how long the first arrival may take, and one that is late: on a line that loses a fifth, TCP may wait for
// half a minute.
const patience = time.Minute

// rate returns by how much a counter of arrivals grows, in units of some arrivals, measured for a time that begins
// after the first one, and is longer where a loaded machine stands still.
func (w Way) rate(ctx context.Context, arrivals *atomic.Int64, unit float64, d time.Duration) (Rate, error) {
	if err := exceed(ctx, arrivals, 0); err != nil {
		return Rate{}, err
	}
	if err := Wait(ctx, time.Duration(float64(d)*warmUp)); err != nil {
		return Rate{}, err
	}
	begin, before := time.Now(), arrivals.Load()
	processor, err := w.processorTime()
	if err != nil {
		return Rate{}, err
	}
	if err := Wait(ctx, d); err != nil {
		return Rate{}, err
	}
	if err := exceed(ctx, arrivals, before); err != nil {
		return Rate{}, err
	}
	units, passed := float64(arrivals.Load()-before)/unit, time.Since(begin)
	after, err := w.processorTime()
	return Rate{
		PerSecond: units / passed.Seconds(), Processor: time.Duration(float64(after-processor) / units),
	}, err
}

// exceed waits until there are more arrivals than some.
func exceed(ctx context.Context, arrivals *atomic.Int64, some int64) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); arrivals.Load() <= some; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if time.Now().After(end) {
			return errors.New("nothing arrives")
		}
	}
	return nil
}

// Wait lets the traffic of other goroutines flow for a time.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// sockets opens a UDP socket at the far end, and one at the near end that is connected to it.
func (w Way) sockets() (near, far *net.UDPConn, err error) {
	err = w.To.Do(func() (err error) {
		far, err = net.ListenUDP("udp4", &net.UDPAddr{})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	port := far.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	err = w.From.Do(func() (err error) {
		near, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.Address, port)))
		return err
	})
	if err != nil {
		_ = far.Close()
		return nil, nil, fmt.Errorf("dial: %w", err)
	}
	return near, far, nil
}
