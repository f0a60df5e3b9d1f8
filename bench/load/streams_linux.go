package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	streamBuffer   = 256 << 10 // bytes of one read or write
	connectTimeout = time.Minute
)

// Streams sends over several TCP connections concurrently, as fast as possible. The unit of the rate is a million bits.
func (w Way) Streams(ctx context.Context, count int, d time.Duration) (Rate, error) {
	s, err := w.connect(ctx, count)
	if err != nil {
		return Rate{}, fmt.Errorf("TCP streams: %w", err)
	}
	s.flow()
	const unit = 1e6 / 8 // bytes
	r, err := w.rate(ctx, &s.received, unit, d)
	s.close()
	if err != nil {
		return Rate{}, fmt.Errorf("TCP streams: %w", err)
	}
	r.Pause = slices.Max(s.pauses)
	return r, nil
}

// streams are TCP connections with traffic in one direction.
type streams struct {
	near, far []net.Conn
	running   sync.WaitGroup
	received  atomic.Int64    // bytes
	pauses    []time.Duration // the longest of each
}

func (w Way) connect(ctx context.Context, count int) (_ *streams, err error) {
	listener, err := w.To.Listen(ctx, ":0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	made := &streams{}
	defer func() {
		if err != nil {
			made.close()
		}
	}()
	target := netip.AddrPortFrom(w.Address, uint16(listener.Addr().(*net.TCPAddr).Port))
	for range count {
		near, err := w.From.Dial(ctx, "tcp4", target)
		if err != nil {
			return nil, err
		}
		made.near = append(made.near, near)
		far, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		made.far = append(made.far, far)
	}
	return made, nil
}

// flow starts sending on all connections until they are closed.
func (s *streams) flow() {
	s.pauses = make([]time.Duration, len(s.far))
	for i := range s.near {
		s.running.Go(func() {
			for block := make([]byte, streamBuffer); ; {
				if _, err := s.near[i].Write(block); err != nil {
					return
				}
			}
		})
		s.running.Go(func() { s.pauses[i] = s.receive(s.far[i]) })
	}
}

// receive counts the received bytes until the connection is closed, and returns the longest time without any.
func (s *streams) receive(from io.Reader) (pause time.Duration) {
	block := make([]byte, streamBuffer)
	for begin := time.Now(); ; begin = time.Now() {
		n, err := from.Read(block)
		s.received.Add(int64(n))
		pause = max(pause, time.Since(begin))
		if err != nil {
			return pause
		}
	}
}

func (s *streams) close() {
	for _, c := range append(s.near, s.far...) {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // no data of this measurement is sent during the next
		}
		_ = c.Close()
	}
	s.running.Wait()
}
