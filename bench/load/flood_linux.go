package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Flood sends datagrams of size bytes as fast as possible, regardless of loss, and returns how many are sent and
// received per second.
func (w Way) Flood(ctx context.Context, size int, d time.Duration) (sent, arrived float64, err error) {
	near, far, err := w.sockets()
	if err != nil {
		return 0, 0, fmt.Errorf("flood: %w", err)
	}
	var out, in atomic.Int64
	var running sync.WaitGroup
	running.Go(func() {
		for buf := make([]byte, size); ; in.Add(1) {
			if _, _, err := far.ReadFromUDPAddrPort(buf); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() {
		for packet := make([]byte, size); ctx.Err() == nil; out.Add(1) {
			_, _ = near.Write(packet) // without buffer space, the packet is lost
		}
	})
	begin := time.Now()
	err = Wait(ctx, d)
	cancel()
	seconds := time.Since(begin).Seconds()
	_, _ = near.Close(), far.Close()
	running.Wait()
	return float64(out.Load()) / seconds, float64(in.Load()) / seconds, err
}
