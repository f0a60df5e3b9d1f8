package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// datagramSize is the size of small packets, in bytes without IP and UDP headers.
	datagramSize = 64
	// datagramWindow is the number of packets in flight. Without a limit, the measurement would show how the two ends
	// of an overloaded path share the processors. The limit is below the size of all queues on the path.
	datagramWindow = 256
	// datagramLoss is the time without arrivals after which packets in flight count as lost.
	datagramLoss = 200 * time.Millisecond
)

// Datagrams sends small UDP packets of one flow. The unit of the rate is a packet.
func (w Way) Datagrams(ctx context.Context, d time.Duration) (Rate, error) {
	some := make(chan struct{}, 1)
	f, err := w.datagrams(datagramSize, func(received int64) {
		if received%(datagramWindow/8) == 0 {
			select {
			case some <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return Rate{}, fmt.Errorf("UDP packets: %w", err)
	}
	defer f.close()
	_ = f.far.SetReadBuffer(4 << 20) // limited by net.core.rmem_max
	f.running.Go(func() { f.sendWindow(some) })
	r, err := w.rate(ctx, &f.received, 1, d)
	if err != nil {
		return Rate{}, fmt.Errorf("UDP packets: %w", err)
	}
	return r, nil
}

// datagrams is a flow of UDP packets, whose arrivals are counted.
type datagrams struct {
	near, far      *net.UDPConn
	sent, received atomic.Int64
	done           chan struct{}
	running        sync.WaitGroup
}

// datagrams begins to receive packets of size bytes, and calls a function with the number of each.
func (w Way) datagrams(size int, arrived func(received int64)) (*datagrams, error) {
	near, far, err := w.sockets()
	if err != nil {
		return nil, err
	}
	f := &datagrams{near: near, far: far, done: make(chan struct{})}
	f.running.Go(func() {
		for buf := make([]byte, size); ; {
			if _, _, err := far.ReadFromUDPAddrPort(buf); err != nil {
				return
			}
			arrived(f.received.Add(1))
		}
	})
	return f, nil
}

// sendWindow sends with a limited number of packets in flight. Some packets have arrived at each event of the channel.
func (f *datagrams) sendWindow(some <-chan struct{}) {
	var lost int64
	silence := time.NewTimer(datagramLoss)
	defer silence.Stop()
	for packet := make([]byte, datagramSize); ; {
		for f.sent.Load()-f.received.Load()-lost >= datagramWindow {
			silence.Reset(datagramLoss)
			select {
			case <-some:
			case <-silence.C:
				lost = f.sent.Load() - f.received.Load()
			case <-f.done:
				return
			}
		}
		if _, err := f.near.Write(packet); errors.Is(err, net.ErrClosed) {
			return
		}
		f.sent.Add(1)
	}
}

func (f *datagrams) close() {
	close(f.done)
	_, _ = f.near.Close(), f.far.Close()
	f.running.Wait()
}

// Flood sends datagrams of size bytes as fast as possible, regardless of loss, and returns how many are sent and
// received per second.
func (w Way) Flood(ctx context.Context, size int, d time.Duration) (sent, arrived float64, err error) {
	f, err := w.datagrams(size, func(int64) {})
	if err != nil {
		return 0, 0, fmt.Errorf("flood: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	f.running.Go(func() {
		for packet := make([]byte, size); ctx.Err() == nil; f.sent.Add(1) {
			_, _ = f.near.Write(packet) // without buffer space, the packet is lost
		}
	})
	begin := time.Now()
	err = Wait(ctx, d)
	cancel()
	seconds := time.Since(begin).Seconds()
	f.close()
	return float64(f.sent.Load()) / seconds, float64(f.received.Load()) / seconds, err
}

// Paced sends datagrams of size bytes at a constant rate, independent of loss, and returns the received share, 0 to 1;
// duplicates count twice. It waits for the duration late for the packets in flight at the end.
func (w Way) Paced(ctx context.Context, size int, pause, d, late time.Duration) (float64, error) {
	f, err := w.datagrams(size, func(int64) {})
	if err != nil {
		return 0, fmt.Errorf("paced packets: %w", err)
	}
	defer f.close()
	packet := make([]byte, size)
	for begin := time.Now(); time.Since(begin) < d; {
		for due := int64(time.Since(begin)/pause) + 1; f.sent.Load() < due; f.sent.Add(1) {
			_, _ = f.near.Write(packet) // an error refers to an earlier datagram
		}
		if err := Wait(ctx, pause); err != nil {
			return 0, err
		}
	}
	if err := Wait(ctx, late); err != nil {
		return 0, err
	}
	return float64(f.received.Load()) / float64(f.sent.Load()), nil
}
