package wireguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// patience is the time that a test waits for packets. In a guest, a first handshake may take five seconds.
const patience = 2 * time.Minute

// serveUDP returns datagrams to their senders until the test ends.
func (h *host) serveUDP(address string) netip.AddrPort {
	h.t.Helper()
	conn := h.ListenUDP(address)
	go netns.Answer(conn, netns.Echo)
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// ask sends a datagram every 50 ms until it returns, and returns the time that took. The number of attempts is fixed,
// so that it takes longer if the machine stalls.
func (h *host) ask(to netip.AddrPort, within time.Duration) (time.Duration, error) {
	h.t.Helper()
	conn := h.ListenUDP("0.0.0.0:0")
	defer conn.Close()
	question, answer := []byte(fmt.Sprint("question ", rand.Uint64())), make([]byte, 2048)
	const every = 50 * time.Millisecond
	begin := time.Now()
	for range within / every {
		if _, err := conn.WriteToUDPAddrPort(question, to); err != nil {
			return 0, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(every)); err != nil {
			return 0, err
		}
		n, _, err := conn.ReadFromUDPAddrPort(answer)
		if err == nil && bytes.Equal(answer[:n], question) {
			return time.Since(begin), nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no answer from %v within %v", to, within)
}

// mustAsk is ask with the test's timeout.
func (h *host) mustAsk(to netip.AddrPort) {
	h.t.Helper()
	_, err := h.ask(to, patience)
	require.NoError(h.t, err)
}

// serveTCP returns all data to its sender until the test ends.
func (h *host) serveTCP(address string) (listening string) {
	h.t.Helper()
	return h.ServeTCP(address, func(c net.Conn) { _, _ = io.Copy(c, c) }).String()
}

// exchangeTCP sends size random bytes and compares the returned ones.
func (h *host) exchangeTCP(to string, size int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	conn, err := h.Dial(ctx, "tcp4", netip.MustParseAddrPort(to))
	require.NoError(h.t, err)
	defer conn.Close()
	require.NoError(h.t, conn.SetDeadline(time.Now().Add(2*patience)))
	sent := make([]byte, size)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		written <- errors.Join(err, conn.(*net.TCPConn).CloseWrite())
	}()
	received, err := io.ReadAll(conn)
	if err := errors.Join(err, <-written); err != nil {
		h.t.Fatalf("TCP with %s, %d of %d bytes came back: %v", to, len(received), size, err)
	}
	if !bytes.Equal(sent, received) {
		h.t.Errorf("TCP with %s: other bytes came back", to)
	}
}
