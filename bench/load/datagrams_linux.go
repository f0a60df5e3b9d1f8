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
	near, far, err := w.sockets()
	if err != nil {
		return Rate{}, fmt.Errorf("UDP packets: %w", err)
	}
	f := &datagrams{near: near, far: far, arrived: make(chan struct{}, 1), done: make(chan struct{})}
	defer f.close()
	_ = far.SetReadBuffer(4 << 20) // limited by net.core.rmem_max
	f.running.Go(f.receive)
	f.running.Go(f.send)
	r, err := w.rate(ctx, &f.received, 1, d)
	if err != nil {
		return Rate{}, fmt.Errorf("UDP packets: %w", err)
	}
	return r, nil
}

// datagrams is a flow of UDP packets with a limited number in flight.
type datagrams struct {
	near, far      *net.UDPConn
	sent, received atomic.Int64
	arrived        chan struct{} // of size one: packets have arrived
	done           chan struct{}
	running        sync.WaitGroup
}

func (f *datagrams) receive() {
	for buf := make([]byte, datagramSize); ; {
		if _, _, err := f.far.ReadFromUDPAddrPort(buf); err != nil {
			return
		}
		if f.received.Add(1)%(datagramWindow/8) == 0 {
			select {
			case f.arrived <- struct{}{}:
			default:
			}
		}
	}
}

func (f *datagrams) send() {
	var lost int64
	silence := time.NewTimer(datagramLoss)
	defer silence.Stop()
	for packet := make([]byte, datagramSize); ; {
		for f.sent.Load()-f.received.Load()-lost >= datagramWindow {
			silence.Reset(datagramLoss)
			select {
			case <-f.arrived:
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
	_ = f.near.Close()
	_ = f.far.Close()
	f.running.Wait()
}
