package flows

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

// stream is a lasting TCP connection to an echo.
type stream struct {
	conn net.Conn
	in   *bufio.Reader

	mu     sync.Mutex
	broken bool          // since the last lap
	ended  bool          // no more bytes come
	last   time.Time     // of an arrival
	pause  time.Duration // the longest time between two arrivals since the last lap
}

// lap returns the longest pause since the last lap, one that lasts included, and whether the stream broke since then.
func (s *stream) lap() (pause time.Duration, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause, broken = s.pause, s.broken
	if !s.ended && !s.last.IsZero() {
		pause = max(pause, time.Since(s.last))
	}
	s.pause, s.broken = 0, false
	return pause, broken
}

// arrived records an arrival, or the end of the stream.
func (s *stream) arrived(ended, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.pause, s.last = max(s.pause, now.Sub(s.last)), now
	s.ended, s.broken = ended, broken
}

// openStream connects and reads the echo's first line, its identity.
func openStream(ctx context.Context, host string) (*stream, error) {
	dialer := net.Dialer{Timeout: openWithin, KeepAlive: -1}
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort(host, echoPort))
	if err != nil {
		return nil, err
	}
	s := &stream{conn: conn, in: bufio.NewReader(conn)}
	_ = conn.SetReadDeadline(time.Now().Add(openWithin))
	if _, err := s.in.ReadString('\n'); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, conn.SetReadDeadline(time.Time{})
}

// run writes a few bytes every ten milliseconds, and reads the echo, until ctx ends or the stream breaks.
func (s *stream) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.write(ctx)
	}()
	s.mu.Lock()
	s.last = time.Now()
	s.mu.Unlock()
	for buf := make([]byte, 4096); ; {
		n, err := s.in.Read(buf)
		if err != nil {
			s.arrived(true, ctx.Err() == nil)
			break
		}
		if n > 0 {
			s.arrived(false, false)
		}
	}
	<-done
}

func (s *stream) write(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := s.conn.Write([]byte("some bytes that come back")); err != nil {
			return // the reader returns the reason
		}
		select {
		case <-ctx.Done():
			_ = s.conn.SetReadDeadline(time.Now()) // ends the reader
			return
		case <-tick.C:
		}
	}
}

// connections are new ones to one host, ten a second.
type connections struct {
	host string

	mu            sync.Mutex
	tried, failed int // since the last lap
}

// lap returns the connections since the last lap: begun, and failed.
func (c *connections) lap() (tried, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tried, failed = c.tried, c.failed
	c.tried, c.failed = 0, 0
	return tried, failed
}

func (c *connections) run(ctx context.Context) {
	outcome := make(chan bool)
	pending := 0
	tick := time.NewTicker(connectEvery)
	defer tick.Stop()
	note := func(ok bool) {
		pending--
		if !ok {
			c.mu.Lock()
			c.failed++
			c.mu.Unlock()
		}
	}
	for ctx.Err() == nil {
		pending++
		c.mu.Lock()
		c.tried++
		c.mu.Unlock()
		go func() { outcome <- connects(context.WithoutCancel(ctx), c.host) }()
		for waiting := true; waiting; {
			select {
			case ok := <-outcome:
				note(ok)
			case <-tick.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
		}
	}
	for pending > 0 {
		note(<-outcome)
	}
}

func connects(ctx context.Context, host string) bool {
	dialer := net.Dialer{Timeout: dialWithin}
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort(host, echoPort))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
