//go:build linux

package websocket

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

// Waits between attempts to connect.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 2 * time.Second // also after a first refusal, which may be for a clock that is behind
	refusedWait = 5 * time.Second
	// workedLately is how long after a connection a refusal is taken for that of a controller that has not read its
	// Ingress yet: it answers as the server does.
	workedLately = time.Minute
	// aheadMost bounds the correction of the clock: whoever ends TLS could collect proofs for later.
	aheadMost    = 10 * time.Minute
	shortestLife = 2 * time.Second // of a connection after whose end the next attempt is immediate
	// replaceBefore is the share of a life, as that of earlier connections was, after which another one is opened.
	replaceBefore = 0.9
)

// ClientConfig is the configuration of the client's end of a tunnel.
type ClientConfig struct {
	ID   TunnelID
	Key  Key
	Seed Key // of the server's certificate
	// Addresses returns those of the server, of scheme wss, which are tried in turn. Their hosts are looked up by the
	// system. It is called before each attempt; without an address, the client waits for one.
	Addresses func() []*url.URL
	Ingress   bool // something else ends TLS: any certificate is accepted
	// Proxy is asked for a connection to the server (HTTP CONNECT); nil: that of HTTPS_PROXY, if NO_PROXY allows it.
	// Credentials are read before each attempt; nil: those in the URL.
	Proxy       *url.URL
	Credentials func() (user, password string, err error)
	Port        uint16 // UDP port of the endpoint to which WireGuard sends
}

// Client is the client's end of a tunnel's transport: while it is open, it keeps a connection to the server.
type Client struct {
	ClientConfig
	log     *slog.Logger
	link    *link
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	since time.Time // of the present connection; zero: none
	err   error     // of the last attempt, or end
}

// Dial opens the client's end, and begins to connect. changed is called on another goroutine after each change of
// Connected.
func Dial(c ClientConfig, log *slog.Logger, changed func()) (*Client, error) {
	s, err := newClientSocket(c.Port)
	if err != nil {
		return nil, err
	}
	return dial(c, s, log, changed), nil
}

// dial is Dial with an open socket.
func dial(c ClientConfig, s datagrams, log *slog.Logger, changed func()) *Client {
	ctx, end := context.WithCancel(context.Background())
	client := &Client{ClientConfig: c, log: log, link: newLink(s, log), end: end}
	client.running.Go(func() { client.run(ctx, changed) })
	return client
}

// Close ends the transport.
func (c *Client) Close() error {
	c.end()
	err := c.link.close()
	c.running.Wait()
	return err
}

// Connected returns when the present connection was opened. Without one, that is zero, and err is the reason, if there
// is one yet.
func (c *Client) Connected() (since time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.err
}

// Remote returns the other end of the TCP connection, and its congestion control; the zero value: there is none.
func (c *Client) Remote() (remote netip.AddrPort, congestion string) { return c.link.remote() }

// Announce tells the server that echoes of a session will come by UDP, so that it answers them.
func (c *Client) Announce(session uint64) {
	if one := c.link.current(); one != nil {
		one.announce(session)
	}
}

func (c *Client) set(since time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.err = since, err
}

// run keeps a connection until ctx ends.
func (c *Client) run(ctx context.Context, changed func()) {
	var life lives
	wait, ahead, refused, worked := firstWait, time.Duration(0), false, time.Time{}
	for turn := 0; ctx.Err() == nil; {
		begin, all := time.Now(), c.Addresses()
		if len(all) == 0 { // it is about to be closed, or gets others
			pause(ctx, firstWait)
			continue
		}
		address := all[turn%len(all)]
		one, buffered, seen, err := c.open(ctx, address, ahead)
		if err == nil {
			err = c.serve(ctx, one, buffered, life.known, changed)
			if err == nil { // its successor is due
				continue
			}
			life.add(time.Since(begin))
			worked = time.Now()
		}
		c.set(time.Time{}, err)
		changed()
		if ctx.Err() != nil {
			return
		}
		c.log.Info("no WebSocket connection", "address", address.Host, "error", err)
		turn++
		lasted := time.Since(begin) > shortestLife && one != nil
		switch {
		case lasted:
			wait = firstWait
			continue
		case errors.Is(err, errNotFound):
			if wait = longestWait; refused && time.Since(worked) > workedLately {
				wait = refusedWait
			}
			if !seen.IsZero() {
				if ahead = time.Until(seen).Round(time.Second); ahead.Abs() > aheadMost {
					ahead = 0
				}
			}
		}
		refused = errors.Is(err, errNotFound)
		pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // spreads the attempts of many gateways
		wait = min(2*wait, longestWait)
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve runs a connection until it ends, and returns the reason, or until its successor is due, and returns nil.
func (c *Client) serve(ctx context.Context, one *conn, buffered []byte, life time.Duration, changed func()) error {
	c.set(time.Now(), nil)
	c.log.Info("WebSocket connection", "server", one.raw.RemoteAddr())
	ended := make(chan error, 1)
	c.running.Go(func() { ended <- c.link.serve(one, buffered) })
	changed()
	var due <-chan time.Time
	if life > 0 {
		due = time.After(time.Duration(replaceBefore * float64(life)))
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		one.close(ctx.Err())
		return ctx.Err()
	case <-due:
		return nil
	}
}

// lives knows how long connections last, if something between limits that.
type lives struct {
	last, known time.Duration
}

// add adds a connection that has ended by itself. Two that lasted equally long were limited.
func (l *lives) add(life time.Duration) {
	l.known = 0
	if difference := (life - l.last).Abs(); life > shortestLife && difference < life/10 {
		l.known = min(life, l.last)
	}
	l.last = life
}
