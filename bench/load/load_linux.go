// Package load sends traffic from one network namespace to another and measures the received traffic. Both ends are in
// this process: they share one clock, and the sender knows the number of received packets.
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

// Way is a path for traffic.
type Way struct {
	From, To netns.Handle
	Address  netip.Addr // of To, as reached from From; IPv4
	// Processes are those that carry the packets, besides the kernel.
	Processes []int
}

// Rate is the received traffic, in units of the sent traffic.
type Rate struct {
	PerSecond float64
	Processor time.Duration // of all processors together, per unit
	Pause     time.Duration // the longest time in which a stream received nothing
}

// warmUp is the share at the beginning of a measurement that does not count: connections reach their speed.
const warmUp = 0.2

// arrivalTimeout bounds the time to the first arrival, and to a late one: on a link that loses a fifth, TCP may wait
// for half a minute.
const arrivalTimeout = time.Minute

// rate returns the growth of a counter of arrivals per second, in units of unit arrivals. The measurement begins after
// the first arrival, and is longer if a loaded machine stops in between.
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

// exceed waits until there are more than some arrivals.
func exceed(ctx context.Context, arrivals *atomic.Int64, some int64) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(arrivalTimeout); arrivals.Load() <= some; {
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

// Wait waits for a duration, during which other goroutines send traffic.
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
	at, err := w.To.ListenPacket(context.Background(), "udp4", ":0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	far = at.(*net.UDPConn)
	port := far.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	conn, err := w.From.Dial(context.Background(), "udp4", netip.AddrPortFrom(w.Address, port))
	if err != nil {
		_ = far.Close()
		return nil, nil, fmt.Errorf("dial: %w", err)
	}
	return conn.(*net.UDPConn), far, nil
}
