package flows

import (
	"bufio"
	"context"
	"net"
	"time"
)

// stream is a lasting TCP connection to an echo.
type stream struct {
	conn net.Conn
	in   *bufio.Reader

	broken bool
	pause  time.Duration // the longest time between two arrivals
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
	last, buf := time.Now(), make([]byte, 4096)
	for {
		n, err := s.in.Read(buf)
		if n > 0 {
			s.pause, last = max(s.pause, time.Since(last)), time.Now()
		}
		if err != nil {
			s.broken = ctx.Err() == nil
			s.pause = max(s.pause, time.Since(last))
			break
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
	host          string
	tried, failed int
}

func (c *connections) run(ctx context.Context) {
	outcome := make(chan bool)
	pending := 0
	tick := time.NewTicker(connectEvery)
	defer tick.Stop()
	note := func(ok bool) {
		pending--
		if !ok {
			c.failed++
		}
	}
	for ctx.Err() == nil {
		c.tried, pending = c.tried+1, pending+1
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
