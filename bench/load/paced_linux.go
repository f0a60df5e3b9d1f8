package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Paced sends datagrams of size bytes at a constant rate, independent of loss, and returns the received share, 0 to 1;
// duplicates count twice. It waits for the duration late for the packets in flight at the end.
func (w Way) Paced(ctx context.Context, size int, pause, d, late time.Duration) (float64, error) {
	near, far, err := w.sockets()
	if err != nil {
		return 0, fmt.Errorf("paced packets: %w", err)
	}
	var arrived atomic.Int64
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = far.Close() }()
	defer func() { _ = near.Close() }()
	running.Go(func() {
		for buf := make([]byte, size); ; {
			if _, _, err := far.ReadFromUDPAddrPort(buf); err != nil {
				return
			}
			arrived.Add(1)
		}
	})
	sent := int64(0)
	packet := make([]byte, size)
	for begin := time.Now(); time.Since(begin) < d; {
		for due := int64(time.Since(begin)/pause) + 1; sent < due; sent++ {
			_, _ = near.Write(packet) // an error refers to an earlier datagram
		}
		if err := Wait(ctx, pause); err != nil {
			return 0, err
		}
	}
	if err := Wait(ctx, late); err != nil {
		return 0, err
	}
	return float64(arrived.Load()) / float64(sent), nil
}
