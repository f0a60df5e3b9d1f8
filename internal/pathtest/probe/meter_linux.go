package probe

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a meter, with and without the token.
const (
	meterLifetime = 15 * time.Minute // the process that started it may have been killed
	meterBytes    = 256 << 30        // received with one token
	connTimeout   = 20 * time.Second // per connection
	tokenTimeout  = 5 * time.Second  // for a connection to send the token
	meterConns    = 2*MaxStreams + 16
)

// The byte after the token is the mode of a connection.
const (
	modeSink  byte = 's' // the meter discards data, and returns its size
	modeEcho  byte = 'e' // it returns messages of echoSize
	modeClose byte = 'c' // it closes the connection
)

const (
	tokenSize = 26        // bytes: of rand.Text
	ackSize   = 8         // of the answer to a token
	echoSize  = 64        // of a message
	chunk     = 128 << 10 // of a read or a write
)

var errRefused = errors.New("refused")

// pendingConns are the connections that have not sent the token, the oldest first. With more than meterConns of them,
// the oldest is closed: idle connections do not block clients that have the token.
type pendingConns struct {
	mu   sync.Mutex
	open []net.Conn
}

// accept serves the connections that begin with the token, until the listener fails.
func accept(l net.Listener, token string, serve func(net.Conn) error) error {
	pending := &pendingConns{}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { _ = pending.serve(conn, token, serve) }() // the client notices the error
	}
}

// serve serves one connection after it has sent the token, and closes it.
func (s *pendingConns) serve(conn net.Conn, token string, serve func(net.Conn) error) error {
	defer conn.Close()
	if err := s.authenticate(conn, token); err != nil {
		return err
	}
	return serve(conn)
}

// authenticate reads the token at the beginning of a connection.
func (s *pendingConns) authenticate(conn net.Conn, token string) error {
	s.add(conn)
	defer s.remove(conn)
	_ = conn.SetDeadline(time.Now().Add(tokenTimeout)) // fails for a closed connection, as reads do then
	hello := make([]byte, tokenSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return err
	}
	if !hasToken(hello, token) {
		return errRefused
	}
	return nil
}

func (s *pendingConns) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open = append(s.open, conn); len(s.open) > meterConns {
		_ = s.open[0].Close() // it may be closed already
		s.open = s.open[1:]
	}
}

func (s *pendingConns) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other net.Conn) bool { return other == conn })
}

// hasToken reports whether a message begins with the token.
func hasToken(message []byte, token string) bool {
	return len(token) == tokenSize && len(message) >= tokenSize && subtle.ConstantTimeCompare(message[:tokenSize], []byte(token)) == 1
}

// Meter is the server of a measurement. It answers only connections with its token, sends no more than it receives, and
// ends after a while: it cannot be made to send to a third party, or to amplify traffic.
type Meter struct{ Token string }

// Serve serves until the context ends.
func (m Meter) Serve(ctx context.Context, at netip.AddrPort) error {
	if len(m.Token) != tokenSize {
		return errRefused
	}
	alive, cancel := context.WithTimeout(ctx, meterLifetime)
	defer cancel()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return err
	}
	context.AfterFunc(alive, func() { listener.Close() })
	slots, budget := make(chan struct{}, meterConns), &atomic.Int64{}
	budget.Store(meterBytes)
	err = accept(listener, m.Token, func(conn net.Conn) error {
		slots <- struct{}{} // a connection that waits too long gets no answer
		defer func() { <-slots }()
		return m.answer(conn, budget)
	})
	if alive.Err() != nil {
		<-ctx.Done() // the kubelet would restart a pod that ends
		return nil
	}
	return err
}

// answer serves a connection that has sent the token.
func (m Meter) answer(conn net.Conn, budget *atomic.Int64) error {
	mode := make([]byte, 1)
	if _, err := io.ReadFull(conn, mode); err != nil {
		return err
	}
	if _, err := conn.Write(acknowledgement(m.Token)); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(connTimeout))
	switch mode[0] {
	case modeSink:
		return discard(conn, budget)
	case modeEcho:
		return repeat(conn)
	}
	return nil
}

// acknowledgement proves that the meter has the token too: another server may listen at its address.
func acknowledgement(token string) []byte {
	sum := sha256.Sum256([]byte("liqonet meter " + token))
	return sum[:ackSize]
}

// discard reads until the end, and sends the number of bytes.
func discard(conn net.Conn, budget *atomic.Int64) error {
	buf := make([]byte, chunk)
	var count int64
	for {
		n, err := conn.Read(buf)
		count += int64(n)
		if budget.Add(-int64(n)) < 0 {
			return errRefused
		}
		if errors.Is(err, io.EOF) {
			return binary.Write(conn, binary.BigEndian, count)
		}
		if err != nil {
			return err
		}
	}
}

// repeat returns messages to the sender.
func repeat(conn net.Conn) error {
	message := make([]byte, echoSize)
	for {
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
		if _, err := conn.Write(message); err != nil {
			return err
		}
	}
}
