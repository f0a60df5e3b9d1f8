//go:build linux

package helper

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How often a path's size is measured: some packets each time.
const (
	sizeEvery = 30 * time.Second
	sizeRetry = time.Second // after the first time that nobody answers; twice as long after each other one
	// sizePatience is how many times nobody must answer before that is told: the other end may not be up yet.
	sizePatience = 2
	// sizeTimes is how many measurements in a row must find less before that is reported, seconds apart: large packets
	// may be lost for a moment on a path that carries them, and what is reported can become the MTU of the peering.
	sizeTimes = 3
)

// pathSize measures again and again how large packets to one target may be, outside overlay and tunnel: these
// fragment what they carry, which is slow, and lost where fragments are. The zero value is of use.
type pathSize struct {
	changed func() // is told of news; nil: nobody

	following sync.Mutex // guards what follows, but path
	target    netip.AddrPort
	stop      context.CancelFunc // nil: nothing is measured
	running   sync.WaitGroup

	mu   sync.Mutex // guards path
	path echo.Path
}

// follow measures the way to a target from now on; the same target changes nothing. What was known of another one
// is forgotten. socket is not to be closed before p is.
func (p *pathSize) follow(socket *echo.Socket, target netip.AddrPort) {
	p.following.Lock()
	defer p.following.Unlock()
	if p.stop != nil && p.target == target {
		return
	}
	p.end()
	ctx, stop := context.WithCancel(context.Background())
	p.target, p.stop = target, stop
	p.mu.Lock()
	p.path = echo.Path{}
	p.mu.Unlock()
	p.running.Go(func() {
		p.run(ctx, func(known int) (int, int, error) { return measureSize(ctx, socket, target, known) })
	})
}

// close ends the measuring and waits for its end.
func (p *pathSize) close() {
	p.following.Lock()
	defer p.following.Unlock()
	p.end()
}

// forget ends the measuring, and forgets what is known.
func (p *pathSize) forget() {
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = echo.Path{}
}

// end is close with p.following held.
func (p *pathSize) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	p.running.Wait()
}

// known is what is known of the path to the target.
func (p *pathSize) known() echo.Path {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path
}

// run measures until ctx ends. measure tries a size first, and returns what the path carries, and the link to it.
func (p *pathSize) run(ctx context.Context, measure func(known int) (size, link int, err error)) {
	var recent []int // sizes, up to sizeTimes
	latest, silences, same := 0, 0, 0
	for {
		found := p.known()
		rest := sizeEvery + rand.N(sizeEvery/10) //nolint:gosec // many nodes shall not ask at once
		size, link, err := measure(latest)
		if err == nil {
			same++
			if size == link || len(recent) == 0 || size < slices.Min(recent) { // not where two sizes take turns
				same = 0
			}
			if size < link {
				rest = min(rest, sizeRetry<<min(same, 10))
			}
			silences, latest, recent = 0, size, append(recent[max(0, len(recent)+1-sizeTimes):], size)
			if most := min(slices.Max(recent), link); most == link || len(recent) == sizeTimes {
				found = echo.Path{Asked: true, Size: most}
			}
		} else {
			rest = min(rest, sizeRetry<<min(silences, 10))
			silences++
			found.Asked = found.Asked || silences >= sizePatience
		}
		p.note(ctx, found)
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// measureSize measures once, up to the size of the link to the target.
func measureSize(ctx context.Context, socket *echo.Socket, target netip.AddrPort, known int) (size, link int, err error) {
	way, err := netops.PathTo(target.Addr())
	if err != nil {
		return 0, 0, err
	}
	size, err = socket.LargestPacket(ctx, echo.SizeConfig{Target: target, Most: way.MTU, Known: known})
	return size, way.MTU, err
}

// note makes known what was found out, unless ctx has ended.
func (p *pathSize) note(ctx context.Context, found echo.Path) {
	p.mu.Lock()
	news := ctx.Err() == nil && p.path != found
	if news {
		p.path = found
	}
	p.mu.Unlock()
	if news && p.changed != nil {
		p.changed()
	}
}

// sizeSocket is the socket from which a node measures its way to a gateway, at the address that its packets to
// there bear.
type sizeSocket struct {
	socket *echo.Socket // nil: not open
	source netip.Addr   // of socket
	size   pathSize
}

// follow measures the way to a gateway's pod.
func (s *sizeSocket) follow(pod netip.Addr) error {
	way, err := netops.PathTo(pod)
	if err != nil {
		return err
	}
	if s.socket != nil && s.source != way.Source {
		if err := s.close(); err != nil {
			return err
		}
	}
	if s.socket == nil {
		if s.socket, err = echo.Listen(echo.Config{Local: netip.AddrPortFrom(way.Source, 0)}); err != nil {
			return err
		}
		s.source = way.Source
	}
	s.size.follow(s.socket, netip.AddrPortFrom(pod, netops.EchoPort))
	return nil
}

// close ends the measuring; what was measured last stays known.
func (s *sizeSocket) close() error {
	if s.socket == nil {
		return nil
	}
	s.size.close()
	err := s.socket.Close()
	s.socket = nil
	return err
}
