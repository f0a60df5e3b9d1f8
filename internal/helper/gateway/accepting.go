//go:build linux

package gateway

import (
	"log/slog"
	"net/netip"
	"sync"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/tunnel/websocket"
)

// accepting is the server's end of WebSocket for all tunnels of a gateway, while its peering has it.
type accepting struct {
	mu     sync.Mutex
	server *websocket.Server // nil: closed
	plain  bool              // an ingress ends TLS
}

// accept serves the tunnels of a view by WebSocket, if the peering has it.
func (g *echoes) accept(v view) error {
	s := v.peering.Settings
	if v.peering.Role != records.Server || !s.CarriesWebSocket() || v.over {
		g.server.close()
		return nil
	}
	want := map[websocket.TunnelID]websocket.ServerTunnel{}
	var seed websocket.Key
	for i, t := range v.own().Tunnels {
		id := transportID(v, i+1)
		var key websocket.Key
		key, seed = transportKeys(id, g.derive)
		want[id] = websocket.ServerTunnel{Key: key, ListenPort: t.ListenPort}
	}
	server, err := g.server.open(netip.AddrPortFrom(g.pod, netops.WebSocketPort), seed, *s.Complete().Ingress != "", g.log)
	if err != nil {
		return err
	}
	return server.Serve(want)
}

// open returns the open server.
func (a *accepting) open(at netip.AddrPort, seed websocket.Key, plain bool, log *slog.Logger) (*websocket.Server, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil && a.plain == plain {
		return a.server, nil
	}
	if a.server != nil {
		_ = a.server.Close()
		a.server = nil
	}
	server, err := websocket.Listen(websocket.ServerConfig{Listen: at, Seed: seed, Plain: plain}, log)
	if err != nil {
		return nil, err
	}
	a.server, a.plain = server, plain
	return server, nil
}

// close closes the server, if it is open.
func (a *accepting) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		_ = a.server.Close() // no data is lost that would arrive otherwise
		a.server = nil
	}
}

// get returns the open server, or nil.
func (a *accepting) get() *websocket.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.server
}

// allows reports whether a client has announced echoes of a session.
func (a *accepting) allows(session uint64) bool {
	server := a.get()
	return server != nil && server.Allows(session)
}
