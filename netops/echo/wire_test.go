package echo

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

var (
	nodeAddr    = netip.MustParseAddrPort("10.80.0.7:6092")
	gatewayAddr = netip.MustParseAddrPort("10.80.0.1:6092")
	otherAddr   = netip.MustParseAddrPort("10.80.0.2:6092")
)

var errNetUnreachable = errors.New("network is unreachable")

// wire is a network in memory that uses the virtual time of the test.
type wire struct {
	mu    sync.Mutex
	ends  map[netip.AddrPort]*wireConn
	delay time.Duration
	drop  func(from, to netip.AddrPort) bool
	most  int // bytes: largest IP packet that it carries; 0: any
	sends []time.Time
}

type packet struct {
	data []byte
	from netip.AddrPort
}

type wireConn struct {
	wire  *wire
	local netip.AddrPort
	in    chan packet
	done  chan struct{}
}

// onWire runs a test in virtual time, with a network.
func onWire(t *testing.T, test func(t *testing.T, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWire()) })
}

func newWire() *wire { return &wire{ends: make(map[netip.AddrPort]*wireConn)} }

func (w *wire) attach(t *testing.T, local netip.AddrPort, responder *Responder) *Socket {
	c := &wireConn{wire: w, local: local, in: make(chan packet, 1000), done: make(chan struct{})}
	w.mu.Lock()
	w.ends[local] = c
	w.mu.Unlock()
	s := newSocket(c, responder)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *wire) setDrop(drop func(from, to netip.AddrPort) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop = drop
}

func (c *wireConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case p := <-c.in:
		return copy(b, p.data), p.from, nil
	case <-c.done:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (c *wireConn) WriteTo(b []byte, to netip.AddrPort, _ Route) error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.sends = append(c.wire.sends, time.Now())
	end, ok := c.wire.ends[to]
	if !ok {
		return errNetUnreachable
	}
	if c.wire.drop != nil && c.wire.drop(c.local, to) {
		return nil
	}
	if c.wire.most != 0 && len(b)+packetHeaders > c.wire.most {
		return nil
	}
	p := packet{slices.Clone(b), c.local}
	time.AfterFunc(c.wire.delay, func() { end.in <- p })
	return nil
}

func (c *wireConn) Close() error {
	close(c.done)
	return nil
}

func probe(t *testing.T, s *Socket, cfg ProbeConfig) *Prober {
	t.Helper()
	p, err := s.Probe(cfg)
	require.NoError(t, err)
	return p
}

// after advances the virtual time.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // synctest's clock
	synctest.Wait()
}
