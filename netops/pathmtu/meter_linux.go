// Package pathmtu measures the path MTU between nodes and gateways, outside overlay and tunnel: these fragment their
// own packets, which is slow, and lossy if fragments are dropped.
package pathmtu

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/kernel"
)

// Intervals of measuring a path MTU, with some packets each time.
const (
	interval = 30 * time.Second
	retry    = time.Second // after the first measurement without an answer; doubled after each further one
	// patience is the number of measurements without an answer before that is the result: the other end may not be up
	// yet.
	patience = 2
	// confirmations is the number of consecutive measurements that must find less before that is the result, seconds
	// apart: large packets may be lost for a moment on a path that carries them, and the result can become the MTU
	// of the peering.
	confirmations = 3
)

// Meter measures the path MTU to one target continuously. The zero value is ready to use.
type Meter struct {
	Changed func() // called after changes of the result; nil: not called

	following sync.Mutex // guards the fields below, but path
	target    netip.AddrPort
	stop      context.CancelFunc // nil: not measuring
	running   sync.WaitGroup

	mu   sync.Mutex // guards path
	path echo.Path
}

// Measure measures the path to a target from now on; the same target changes nothing. The results of another target are
// deleted. The socket must not be closed before the Meter.
func (m *Meter) Measure(socket *echo.Socket, target netip.AddrPort) {
	m.following.Lock()
	defer m.following.Unlock()
	if m.stop != nil && m.target == target {
		return
	}
	m.end()
	ctx, stop := context.WithCancel(context.Background())
	m.target, m.stop = target, stop
	m.mu.Lock()
	m.path = echo.Path{}
	m.mu.Unlock()
	m.running.Go(func() {
		m.run(ctx, func(known int) (int, int, error) { return measure(ctx, socket, target, known) })
	})
}

// Close stops measuring and waits for its end. The last result is kept.
func (m *Meter) Close() {
	m.following.Lock()
	defer m.following.Unlock()
	m.end()
}

// Forget stops measuring, and deletes the result.
func (m *Meter) Forget() {
	m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.path = echo.Path{}
}

// end is Close with m.following held.
func (m *Meter) end() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	m.running.Wait()
}

// Path returns the result for the target. The zero value: not known yet.
func (m *Meter) Path() echo.Path {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.path
}

// run measures until ctx ends. measure tries the known size first, and returns the largest size for the path, and the
// link to it.
func (m *Meter) run(ctx context.Context, measure func(known int) (size, link int, err error)) {
	var recent []int // sizes, up to confirmations
	latest, silences, same := 0, 0, 0
	for {
		found := m.Path()
		rest := interval + rand.N(interval/10) //nolint:gosec // spreads the measurements of many nodes
		size, link, err := measure(latest)
		if err == nil {
			same++
			if size == link || len(recent) == 0 || size < slices.Min(recent) { // not if two sizes alternate
				same = 0
			}
			if size < link {
				rest = min(rest, retry<<min(same, 10))
			}
			silences, latest, recent = 0, size, append(recent[max(0, len(recent)+1-confirmations):], size)
			if most := min(slices.Max(recent), link); most == link || len(recent) == confirmations {
				found = echo.Path{Asked: true, Size: most}
			}
		} else {
			rest = min(rest, retry<<min(silences, 10))
			silences++
			found.Asked = found.Asked || silences >= patience
		}
		m.set(ctx, found)
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// measure measures once, up to the size of the link to the target.
func measure(ctx context.Context, socket *echo.Socket, target netip.AddrPort, known int) (size, link int, err error) {
	way, err := kernel.PathTo(target.Addr())
	if err != nil {
		return 0, 0, err
	}
	size, err = socket.LargestPacket(ctx, echo.SizeConfig{Target: target, Most: way.MTU, Known: known})
	return size, way.MTU, err
}

// set stores a result, unless ctx has ended.
func (m *Meter) set(ctx context.Context, found echo.Path) {
	m.mu.Lock()
	news := ctx.Err() == nil && m.path != found
	if news {
		m.path = found
	}
	m.mu.Unlock()
	if news && m.Changed != nil {
		m.Changed()
	}
}

// SocketMeter is a Meter of a node's path to a gateway, with a socket of its own at the source address of the node's
// packets to that gateway. The zero value is ready to use.
type SocketMeter struct {
	Meter
	socket *echo.Socket // nil: not open
	source netip.Addr   // of socket
}

// Measure measures the path to a gateway's pod from now on.
func (s *SocketMeter) Measure(pod netip.Addr) error {
	way, err := kernel.PathTo(pod)
	if err != nil {
		return err
	}
	if s.socket != nil && s.source != way.Source {
		if err := s.Close(); err != nil {
			return err
		}
	}
	if s.socket == nil {
		if s.socket, err = echo.Listen(echo.Config{Local: netip.AddrPortFrom(way.Source, 0)}); err != nil {
			return err
		}
		s.source = way.Source
	}
	s.Meter.Measure(s.socket, netip.AddrPortFrom(pod, netops.EchoPort))
	return nil
}

// Close stops measuring, and closes the socket. The last result is kept.
func (s *SocketMeter) Close() error {
	if s.socket == nil {
		return nil
	}
	s.Meter.Close()
	err := s.socket.Close()
	s.socket = nil
	return err
}
