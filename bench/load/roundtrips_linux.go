package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// roundTripLoss is the timeout of an answer.
const roundTripLoss = time.Second

// RoundTrips sends small UDP packets that are returned, one after another, and returns the duration of each. A lost
// packet counts as one second.
func (w Way) RoundTrips(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	near, far, err := w.sockets()
	if err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = far.Close() }()
	defer func() { _ = near.Close() }()
	running.Go(func() { netns.Answer(far, netns.Echo) })
	if _, err := roundTrips(ctx, near, time.Duration(float64(d)*warmUp)); err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	all, err := roundTrips(ctx, near, d)
	if err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	return all, nil
}

// roundTrips requires at least one answer.
func roundTrips(ctx context.Context, conn *net.UDPConn, d time.Duration) ([]time.Duration, error) {
	var all []time.Duration
	packet := make([]byte, datagramSize)
	answers := 0
	for begin, end := time.Now(), time.Now().Add(d); len(all) == 0 || begin.Before(end); begin = time.Now() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := conn.SetReadDeadline(begin.Add(roundTripLoss)); err != nil {
			return nil, err
		}
		if _, err := conn.Write(packet); err != nil {
			return nil, err
		}
		switch _, err := conn.Read(packet); {
		case err == nil:
			answers++
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		}
		all = append(all, time.Since(begin))
	}
	if answers == 0 {
		return nil, errors.New("no answer")
	}
	return all, nil
}
