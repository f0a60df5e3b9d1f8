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
	"liqonet.io/liqonet/netops/kernel"
)

// Intervals of measuring a path MTU, with some packets each time.
const (
	sizeEvery = 30 * time.Second
	sizeRetry = time.Second // after the first measurement without an answer; doubled after each further one
	// sizePatience is the number of measurements without an answer before that is reported: the other end may not be up
	// yet.
	sizePatience = 2
	// sizeTimes is the number of consecutive measurements that must find less before that is reported, seconds apart:
	// large packets may be lost for a moment on a path that carries them, and the reported value can become the MTU of
	// the peering.
	sizeTimes = 3
)

// pathSize measures continuously how large packets to one target may be, outside overlay and tunnel: these fragment
// their packets, which is slow, and lossy if fragments are dropped. The zero value is ready to use.
type pathSize struct {
	changed func() // called after changes; nil: not called

	following sync.Mutex // guards the fields below, but path
	target    netip.AddrPort
	stop      context.CancelFunc // nil: not measuring
	running   sync.WaitGroup

	mu   sync.Mutex // guards path
	path echo.Path
}

// measurePath measures the path to a target from now on; the same target changes nothing. The results of another target
// are deleted. socket must not be closed before p.
func (p *pathSize) measurePath(socket *echo.Socket, target netip.AddrPort) {
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

// close stops measuring and waits for its end.
func (p *pathSize) close() {
	p.following.Lock()
	defer p.following.Unlock()
	p.end()
}

// forget stops measuring, and deletes the result.
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

// known returns the result for the path to the target.
func (p *pathSize) known() echo.Path {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path
}

// run measures until ctx ends. measure tries the known size first, and returns the largest size for the path, and the
// link to it.
func (p *pathSize) run(ctx context.Context, measure func(known int) (size, link int, err error)) {
	var recent []int // sizes, up to sizeTimes
	latest, silences, same := 0, 0, 0
	for {
		found := p.known()
		rest := sizeEvery + rand.N(sizeEvery/10) //nolint:gosec // spreads the measurements of many nodes
		size, link, err := measure(latest)
		if err == nil {
			same++
			if size == link || len(recent) == 0 || size < slices.Min(recent) { // not if two sizes alternate
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
		p.set(ctx, found)
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// measureSize measures once, up to the size of the link to the target.
func measureSize(ctx context.Context, socket *echo.Socket, target netip.AddrPort, known int) (size, link int, err error) {
	way, err := kernel.PathTo(target.Addr())
	if err != nil {
		return 0, 0, err
	}
	size, err = socket.LargestPacket(ctx, echo.SizeConfig{Target: target, Most: way.MTU, Known: known})
	return size, way.MTU, err
}

// set stores a result, unless ctx has ended.
func (p *pathSize) set(ctx context.Context, found echo.Path) {
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

// sizeSocket is the socket from which a node measures its path to a gateway, at the source address of its packets to
// that gateway.
type sizeSocket struct {
	socket *echo.Socket // nil: not open
	source netip.Addr   // of socket
	size   pathSize
}

// measurePath measures the path to a gateway's pod.
func (s *sizeSocket) measurePath(pod netip.Addr) error {
	way, err := kernel.PathTo(pod)
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
	s.size.measurePath(s.socket, netip.AddrPortFrom(pod, netops.EchoPort))
	return nil
}

// close stops measuring; the last result stays known.
func (s *sizeSocket) close() error {
	if s.socket == nil {
		return nil
	}
	s.size.close()
	err := s.socket.Close()
	s.socket = nil
	return err
}
