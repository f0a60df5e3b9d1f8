package probe

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	maxFrame = large           // bytes of a message over TCP
	idle     = 5 * time.Minute // a server closes a connection after this time without data
)

// answer is the answer of a server to a message.
type answer struct {
	Node string     `json:"node"` // of the server
	From netip.Addr `json:"from"` // the sender, as the server observes it
	Sum  string     `json:"sum"`  // SHA-256 of the message
}

// Server answers probes on a node. A connection, and each datagram, begins with the token; others get no answer.
type Server struct{ Node, Token string }

// Serve answers over TCP and UDP at an address until the context ends.
func (s Server) Serve(ctx context.Context, at netip.AddrPort) error {
	if len(s.Token) != tokenSize {
		return errRefused
	}
	var config net.ListenConfig
	stream, err := config.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return err
	}
	defer stream.Close()
	packets, err := config.ListenPacket(ctx, "udp4", stream.Addr().String())
	if err != nil {
		return err
	}
	defer packets.Close()
	ended := make(chan error, 2)
	go func() { ended <- accept(stream, s.Token, s.answerFrames) }()
	go func() { ended <- s.serveUDP(packets) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

func (s Server) answerFrames(conn net.Conn) (err error) {
	for err == nil {
		err = s.answerFrame(conn)
	}
	return err
}

// answerFrame answers one message: its length in four bytes, then its bytes. The answer has the same form.
func (s Server) answerFrame(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(idle)); err != nil {
		return err
	}
	sum := sha256.New()
	if err := copyFrame(sum, conn); err != nil {
		return err
	}
	return writeFrame(conn, s.answer(conn.RemoteAddr(), sum.Sum(nil)))
}

// serveUDP answers datagrams. An answer is not longer than its request, which prevents amplification. No answer goes to
// the port of a server: after a forged request, two servers would answer each other without end.
func (s Server) serveUDP(conn net.PacketConn) error {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		if from.(*net.UDPAddr).Port == conn.LocalAddr().(*net.UDPAddr).Port {
			continue
		}
		if !hasToken(buf[:n], s.Token) {
			continue
		}
		sum := sha256.Sum256(buf[:n])
		if reply := s.answer(from, sum[:]); len(reply) <= n {
			_, _ = conn.WriteTo(reply, from) // the probe retries
		}
	}
}

func (s Server) answer(from net.Addr, sum []byte) []byte {
	a := answer{Node: s.Node, Sum: hex.EncodeToString(sum)}
	if source, err := netip.ParseAddrPort(from.String()); err == nil {
		a.From = source.Addr().Unmap()
	}
	text, _ := json.Marshal(a) // a text and an address always encode
	return text
}

func sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func writeFrame(w io.Writer, data []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

// copyFrame copies a message in chunks: the announced length allocates no memory.
func copyFrame(w io.Writer, r io.Reader) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return errors.New("message is too long")
	}
	_, err := io.CopyN(w, r, int64(n))
	return err
}
