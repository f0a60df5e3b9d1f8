//go:build linux

package gateway

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/websocket"
)

const (
	// keptOpen is how long a connection stays after UDP has the packets back: for those in flight, and for a UDP that
	// falls silent again.
	keptOpen = 10 * time.Second
	// readyAfter is how long the connection must be open before it gets the packets: the server's gateway is up for
	// that long, and UDP is silent all the same.
	readyAfter = time.Second
	// outerHeaders are the bytes around a packet in the tunnel: IPv4 20, UDP 8, WireGuard 32.
	outerHeaders = 60
)

// carrier carries the packets of a client's tunnel by WebSocket while UDP does not get through. The lock of the
// gateway's echoes guards it.
type carrier struct {
	due    membership.Carrying
	config websocket.ClientConfig
	urls   []*url.URL        // of the server, in the record; none: there is no WebSocket
	always bool              // the packets never go by UDP
	client *websocket.Client // nil: closed
	remote netip.AddrPort    // the other end of its TCP connection; the zero value: none yet
	// congestion is its congestion control.
	congestion string
	path       echo.Path    // to there: what crosses a connection has any size
	prober     *echo.Prober // of a try of UDP; nil: none
	most       int          // bytes of a packet of the tunnel, with all headers
	port       uint16       // UDP port of the endpoint; 0: not known yet
	failed     time.Time    // when the client could not be opened
}

// on reports whether WebSocket carries the packets.
func (c *carrier) on() bool {
	on, _ := c.due.On()
	return len(c.urls) > 0 && (on || c.always)
}

// update applies a view to the carrier of the tunnel of a number, and reports whether an open connection goes another
// way than it says.
func (c *carrier) update(v view, number int, derive func(label string) [32]byte) (other bool) {
	before := c.config
	s, urls := v.peering.Settings.Complete(), v.own().Tunnels[number-1].WebSocket
	c.always, c.most = *s.Transport == records.WebSocket, v.peering.MTU+outerHeaders
	c.config.ID, c.urls = transportID(v, number), nil
	if v.peering.Role != records.Client || *s.Transport == records.UDP || len(urls) == 0 || v.over {
		return false // carry closes it
	}
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil { // the record is valid
			c.urls = append(c.urls, u)
		}
	}
	c.config.Key, c.config.Seed = transportKeys(c.config.ID, derive)
	c.config.Ingress = *s.Ingress != ""
	c.config.Proxy, c.config.Credentials = nil, nil
	if *s.Proxy != "" {
		c.config.Proxy, _ = url.Parse(*s.Proxy) // likewise
		c.config.Credentials = proxyCredentials
	}
	return c.config.Ingress != before.Ingress || !reflect.DeepEqual(c.config.Proxy, before.Proxy)
}

// transportID returns the ID of a tunnel for both ends.
func transportID(v view, number int) websocket.TunnelID {
	t := records.TunnelOf(v.peering.Role, v.id.Number, number)
	return websocket.TunnelID{Server: uint8(t.Server), Client: uint8(t.Client)}
}

// transportKeys returns the key of a tunnel's proofs, and the seed of the server's certificate.
func transportKeys(id websocket.TunnelID, derive func(label string) [32]byte) (proof, seed websocket.Key) {
	return derive(fmt.Sprintf("websocket proof %d.%d", id.Server, id.Client)), derive("websocket certificate")
}

// proxyFolder has the mounted Secret with the credentials for the client's proxy, if there is one.
const proxyFolder = "/etc/liqonet/proxy"

// proxyCredentials reads the credentials, which may change; none if there is no Secret.
func proxyCredentials() (user, password string, err error) {
	for name, into := range map[string]*string{"username": &user, "password": &password} {
		text, err := os.ReadFile(filepath.Join(proxyFolder, name))
		if err != nil && !os.IsNotExist(err) {
			return "", "", err
		}
		*into = strings.TrimSpace(string(text))
	}
	return user, password, nil
}

// carry opens and closes the carrier as the tunnel needs it, gives it the packets while UDP is silent, and tries UDP.
// It is called at least twice a second, and with each lost echo. The lock is held.
func (t *peerTunnel) carry(now time.Time) {
	c := &t.carrier
	silence := t.renewal.due.Silence(now)
	needed := t.device != nil && c.needed(silence, now)
	if c.client != nil && (!needed || c.client.Port != c.port) {
		t.closeCarrier()
	}
	if !needed || c.client == nil && !t.openCarrier(now) {
		return
	}
	c.measure()
	if !c.always {
		t.change(silence, now)
	}
}

// change gives the packets to the connection or takes them back, or tries UDP; the lock is held.
func (t *peerTunnel) change(silence time.Duration, now time.Time) {
	c := &t.carrier
	switch connected, _ := c.client.Connected(); {
	case connected.IsZero():
		if c.on() && silence >= membership.EndAfter {
			c.due.End()
			wakeup.Notify(t.gateway.wake) // the pass removes the mark
		}
	case !c.on() && silence >= membership.RenewAfter && now.Sub(connected) >= readyAfter:
		t.log.Warn("UDP does not get through: WebSocket carries the packets")
		c.due.Begin(now)
		wakeup.Notify(t.gateway.wake) // the pass sets the mark
	case c.due.Try(now):
		t.try()
	}
}

// needed reports whether there is a use for a connection, after some silence of the tunnel.
func (c *carrier) needed(silence time.Duration, now time.Time) bool {
	if len(c.urls) == 0 || c.port == 0 {
		return false
	}
	on, since := c.due.On()
	return on || c.always || silence >= membership.DialAfter || !since.IsZero() && now.Sub(since) < keptOpen
}

// openCarrier begins to connect, and reports whether it did. After a failure, it tries again a second later.
func (t *peerTunnel) openCarrier(now time.Time) bool {
	c := &t.carrier
	if now.Sub(c.failed) < time.Second {
		return false
	}
	c.config.Port, c.config.Addresses = c.port, t.addresses
	client, err := websocket.Dial(c.config, t.log, func() { wakeup.Notify(t.gateway.news) })
	if err != nil {
		t.log.Warn("no WebSocket", "error", err)
		c.failed = now
		return false
	}
	c.client = client
	return true
}

// addresses returns the record's addresses of the server, and the same port of the nodes that it has announced since,
// as for UDP.
func (t *peerTunnel) addresses() []*url.URL {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	all := slices.Clone(t.carrier.urls)
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	if _, err := netip.ParseAddr(first.Hostname()); err != nil || t.carrier.config.Ingress {
		return all // a name of a load balancer, or of an ingress
	}
	for _, a := range t.gateway.endpoints.current() {
		next := *first
		next.Host = net.JoinHostPort(a.String(), first.Port())
		if !slices.ContainsFunc(all, func(u *url.URL) bool { return *u == next }) {
			all = append(all, &next)
		}
	}
	return all
}

// measure updates the path to the other end of the TCP connection.
func (c *carrier) measure() {
	remote, congestion := c.client.Remote()
	if !remote.IsValid() {
		return
	}
	if c.congestion = congestion; remote == c.remote {
		return
	}
	c.remote = remote
	if way, err := kernel.PathTo(remote.Addr()); err == nil {
		c.path = echo.Path{Asked: true, Size: way.MTU}
	}
}

// closeCarrier ends the carrier's connection and its probes; the lock is held.
func (t *peerTunnel) closeCarrier() {
	client := t.carrier.client
	t.carrier.client, t.carrier.remote = nil, netip.AddrPort{}
	t.endTry()
	if client != nil {
		go func() { _ = client.Close() }() // it waits for its goroutines
	}
}

// transport returns the other end of the tunnel's packets outside, and whether WebSocket carries them: the other end of
// the TCP connection then, at the server that of the last proxy, and its congestion control.
func (t *peerTunnel) transport(s tunnel.Stats) (remote netip.AddrPort, carried bool, congestion string) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	t.carrier.port = cmp.Or(s.Endpoint.Port(), t.carrier.port) // 0: the tunnel could not be read
	switch server := t.gateway.server.get(); {
	case t.role == records.Client && t.carrier.on():
		return t.carrier.remote, true, t.carrier.congestion
	case t.role == records.Server && server != nil && s.Endpoint.Addr().IsLoopback():
		remote, congestion = server.Remote(t.carrier.config.ID, s.Endpoint)
		return remote, true, congestion
	}
	return s.Endpoint, false, ""
}

// entersBy returns the address at which the client's WebSocket connection enters the server's cluster. For a server it
// is the zero value: the other end can be a proxy of many, whose packets are not the peer's.
func (t *peerTunnel) entersBy() netip.AddrPort {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	return t.carrier.remote
}

// resumeTransports continues with WebSocket where an earlier process, or pod, of the gateway ended with it.
func (l *loop) resumeTransports() {
	s, _ := single[records.Status](l.status, l.Namespace, l.ID.StatusName()) // an unreadable record has none
	for i, t := range s.AllTunnels() {
		if t.Transport == records.WebSocket {
			one := l.echoes.tunnel(i + 1)
			l.echoes.mu.Lock()
			one.carrier.due.Begin(time.Now())
			l.echoes.mu.Unlock()
		}
	}
}

// carried returns the numbers of the tunnels whose packets go by WebSocket.
func (g *echoes) carried(own records.LocalGateway) map[int]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[int]bool{}
	for i := range own.Tunnels {
		if i < len(g.tunnels) && g.tunnels[i].carrier.on() {
			all[i+1] = true
		}
	}
	return all
}
