package probe

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a meter: of whoever has the token, and of whoever connects.
const (
	meterLife     = 15 * time.Minute // after which it answers nobody: whoever started it may have been killed
	meterBytes    = 256 << 30        // received with one token
	meterTime     = 20 * time.Second // of a connection
	meterPatience = 5 * time.Second  // with a connection that has not sent the token
	meterConns    = 2*MaxStreams + 16
)

// What a connection is for follows the token.
const (
	modeSink  byte = 's' // the meter discards what comes, and says how much it was
	modeEcho  byte = 'e' // it returns messages of echoSize
	modeClose byte = 'c' // it closes the connection
)

const (
	tokenSize = 26        // bytes: of rand.Text
	ackSize   = 8         // of the answer to a token
	echoSize  = 64        // of a message
	chunk     = 128 << 10 // of a read or a write
)

var errMeter = errors.New("refused")

// strangers are the connections that have not sent the token, the oldest first. For one more than meterConns the oldest
// is closed: many that say nothing keep nobody out who has the token.
type strangers struct {
	mu   sync.Mutex
	open []net.Conn
}

// admit waits for the token with which a connection begins.
func (s *strangers) admit(conn net.Conn, token string) error {
	s.add(conn)
	defer s.remove(conn)
	_ = conn.SetDeadline(time.Now().Add(meterPatience)) // fails for a closed connection: so do reads
	hello := make([]byte, tokenSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return err
	}
	if !knows(hello, token) {
		return errMeter
	}
	return nil
}

func (s *strangers) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open = append(s.open, conn); len(s.open) > meterConns {
		_ = s.open[0].Close() // its other end may be gone already
		s.open = s.open[1:]
	}
}

func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other net.Conn) bool { return other == conn })
}

// knows reports whether a message begins with the token.
func knows(message []byte, token string) bool {
	return len(token) == tokenSize && len(message) >= tokenSize && subtle.ConstantTimeCompare(message[:tokenSize], []byte(token)) == 1
}

// Meter is the far end of a measurement. It answers those who know its token alone, says no more than it is told, and
// ends after a while: nobody can have it send to a third party, or more than he sends himself.
type Meter struct{ Token string }

// Serve serves until the context ends.
func (m Meter) Serve(ctx context.Context, at netip.AddrPort) error {
	if len(m.Token) != tokenSize {
		return errMeter
	}
	alive, cancel := context.WithTimeout(ctx, meterLife)
	defer cancel()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return err
	}
	context.AfterFunc(alive, func() { listener.Close() })
	unknown, slots, budget := &strangers{}, make(chan struct{}, meterConns), &atomic.Int64{}
	budget.Store(meterBytes)
	for {
		conn, err := listener.Accept()
		switch {
		case alive.Err() != nil:
			<-ctx.Done() // a pod that ends would be started again
			return nil
		case err != nil:
			return err
		}
		go func() { _ = m.admitted(conn, unknown, slots, budget) }() // the other end sees it
	}
}

// admitted serves one connection once it has sent the token, and closes it. Whoever waits too long for a slot finds no
// answer.
func (m Meter) admitted(conn net.Conn, unknown *strangers, slots chan struct{}, budget *atomic.Int64) error {
	defer conn.Close()
	if err := unknown.admit(conn, m.Token); err != nil {
		return err
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	return m.answer(conn, budget)
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
	_ = conn.SetDeadline(time.Now().Add(meterTime))
	switch mode[0] {
	case modeSink:
		return discard(conn, budget)
	case modeEcho:
		return repeat(conn)
	}
	return nil
}

// acknowledgement shows that the meter has the token, too: at that address, something else may listen.
func acknowledgement(token string) []byte {
	sum := sha256.Sum256([]byte("liqonet meter " + token))
	return sum[:ackSize]
}

// discard reads all that comes, and answers how many bytes it was.
func discard(conn net.Conn, budget *atomic.Int64) error {
	buf := make([]byte, chunk)
	var count int64
	for {
		n, err := conn.Read(buf)
		count += int64(n)
		if budget.Add(-int64(n)) < 0 {
			return errMeter
		}
		if errors.Is(err, io.EOF) {
			return writeCount(conn, count)
		}
		if err != nil {
			return err
		}
	}
}

// repeat returns messages.
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
