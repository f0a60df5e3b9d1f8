//go:build linux

package gateway

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/tunnel"
)

// keepAlive keeps the NAT mapping of a client on the path to the server (RFC 4787: at least 30 s for UDP).
const keepAlive = 15 * time.Second

// carriedPort is the port before those of endpoints that only WebSocket carries: WireGuard needs some endpoint.
const carriedPort = 51890

// view is the state of its cluster and peering that a gateway has read.
type view struct {
	id      records.GatewayID
	fabric  records.Fabric
	peering records.Peering
	nodes   []reportedNode // sorted by name
	claims  claimants      // of all reports in the last read, whichever view has them
	pod     netip.Addr     // of the gateway
	unused  map[int]string // tunnels that carry no packets of pods, by number, and why
	carried map[int]bool   // tunnels whose packets go by WebSocket, by number
	over    bool           // a later pod has the tunnels
	vni     uint32         // of tunnels without encryption
	renewed map[int]int    // how often each of these was renewed, by number

	apiServers []netip.Addr  // remote addresses of this gateway's connections
	drift      records.Drift // that was restored until the view was served
}

// own returns the record's entry for this gateway.
func (v view) own() records.LocalGateway { return v.peering.Gateways[v.id.Number-1] }

// wantedOf returns the input for the state of the gateway's kernel with some nodes only.
func (v view) wantedOf(nodes []records.Node) datapath.Gateway {
	g := datapath.Gateway{Fabric: v.fabric, Peering: v.peering, Number: v.id.Number, Nodes: nodes, Pod: v.pod, Unused: map[int]bool{}, PlainVNI: v.vni, Renewals: v.renewed}
	for number := range v.unused {
		g.Unused[number] = true
	}
	return g
}

// state returns the desired state of the kernel in the gateway's namespace.
func (v view) state() netops.State {
	nodes := make([]records.Node, 0, len(v.nodes))
	for _, n := range latestFirst(v.nodes) {
		nodes = append(nodes, *n.Node)
	}
	return v.wantedOf(nodes).State()
}

// exposed returns the hosts that the peer may reach.
func (v view) exposed() []records.Exposed { return v.wantedOf(nil).Exposed() }

// keysMade returns the creation time of a gateway's keys, which is optional: no key depends on it.
func keysMade(folder string) time.Time {
	text, _ := os.ReadFile(filepath.Join(folder, records.CreatedKey))
	made, _ := time.Parse(time.RFC3339, string(text))
	return made
}

// private reports whether packets without encryption must not go to public addresses.
func (v view) private() bool {
	s := v.peering.Settings.Complete()
	return s.Plain() && !*s.AllowPublic
}

// tunnel returns the desired state of the tunnel to the peer's gateway of a number. Its allowed IPs are the peer's pod
// and external CIDRs and its tunnel address only.
func (v view) tunnel(d tunnel.Driver, number int) (tunnel.Config, error) {
	p, t := v.peering, v.own().Tunnels[number-1]
	local, remote := p.TunnelAddresses(v.id.Number, number)
	peer, err := d.Decode(t.Driver.Member())
	if err != nil {
		return tunnel.Config{}, err
	}
	c := tunnel.Config{
		Name:           netops.TunnelLink(number),
		Implementation: string(*p.Settings.Complete().Implementation),
		ListenPort:     v.wantedOf(nil).ListenPort(number),
		MTU:            p.MTU,
		AllowedIPs:     []netip.Prefix{cidr.Single(remote)},
		Endpoints:      t.Endpoints,
		MAC:            netops.OverlayMAC(local.Addr()),
		PeerMAC:        netops.OverlayMAC(remote),
		Group:          netops.GroupTunnel,
		Private:        v.private(),
		Closed:         v.over,
		Peer:           peer,
	}
	for _, m := range p.Peer.CIDRs() {
		c.AllowedIPs = append(c.AllowedIPs, m.Real)
	}
	if p.Role == records.Client {
		c.KeepAlive = keepAlive
	}
	if v.carried[number] && !p.Settings.Plain() { // until the carrier is closed
		c.Mark = netops.MarkCarried
	}
	if len(t.WebSocket) > 0 && len(t.Endpoints) == 0 {
		c.Endpoints = []string{fmt.Sprintf("127.0.0.1:%d", carriedPort+number)}
	}
	return c, nil
}
