package plain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/nft"
	"liqonet.io/liqonet/netops/tunnel"
)

const (
	listenPort = 51840
	clientPort = 61100
	patience   = 10 * time.Second
)

var (
	serverMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	clientMAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// pair is a client behind a NAT that changes its address and port, and a server.
type pair struct {
	server, router, client     netns.Namespace
	serverConfig, clientConfig tunnel.Config
	serverTunnel, clientTunnel tunnel.Tunnel
	serverDriver, clientDriver *Driver
}

// newPair opens both ends. The server's packet filter records the senders.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{server: netns.New(t), router: netns.New(t), client: netns.New(t)}
	p.router.Link("south", p.client, "wire", 0)
	p.router.Link("north", p.server, "wire", 0)
	p.client.IP("addr add 10.9.0.2/24 dev wire", "route add default via 10.9.0.1")
	p.server.IP("addr add 192.0.2.1/24 dev wire")
	p.router.IP("addr add 10.9.0.1/24 dev south", "addr add 192.0.2.7/24 dev north")
	p.router.Run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
	p.masquerade(40000)
	p.server.NFT("add table ip liqonet", "add set ip liqonet arrived { type ipv4_addr . inet_service; size 256; flags dynamic,timeout; timeout 1m; }")
	p.server.Chain("liqonet", "in", "filter hook input priority 0", fmt.Sprintf("udp dport %d update @arrived { ip saddr . udp sport }", listenPort))
	derive := func(label string) [32]byte { return [32]byte{1, byte(len(label)), 3} }
	p.serverDriver, p.clientDriver = New(derive, p.arrived(t)), New(derive, nil)
	p.serverConfig = tunnel.Config{Name: "lqn-tunnel", ListenPort: listenPort, MTU: 1400, MAC: serverMAC, PeerMAC: clientMAC, AllowedIPs: parsed.Prefixes("169.254.18.2/32")}
	p.clientConfig = tunnel.Config{Name: "lqn-tunnel", ListenPort: clientPort, MTU: 1400, MAC: clientMAC, PeerMAC: serverMAC, Endpoints: []string{"192.0.2.1:51840"}}
	p.serverTunnel = open(t, p.server, p.serverDriver, p.serverConfig)
	p.clientTunnel = open(t, p.client, p.clientDriver, p.clientConfig)
	p.server.IP("addr add 169.254.18.1/30 dev lqn-tunnel", "neigh replace 169.254.18.2 lladdr "+clientMAC.String()+" dev lqn-tunnel")
	p.client.IP("addr add 169.254.18.2/30 dev lqn-tunnel", "neigh replace 169.254.18.1 lladdr "+serverMAC.String()+" dev lqn-tunnel")
	return p
}

// masquerade gives the client's packets another port.
func (p *pair) masquerade(port int) {
	p.router.NFT("table ip nat", "delete table ip nat")
	p.router.Chain("nat", "post", "nat hook postrouting priority 100", fmt.Sprintf("oifname north udp sport %d snat to 192.0.2.7:%d", clientPort, port), "oifname north masquerade")
}

func (p *pair) arrived(t *testing.T) func(uint16) ([]Sender, error) {
	var conn *nft.Conn
	p.server.Inside(func() (err error) { conn, err = nft.Open(-1); return err })
	t.Cleanup(func() { _ = conn.Close() })
	return func(uint16) (all []Sender, err error) {
		found, err := conn.Senders("liqonet", "arrived")
		for _, f := range found {
			all = append(all, Sender{f.From, time.Minute - f.Left})
		}
		return all, err
	}
}

func open(t *testing.T, ns netns.Namespace, d *Driver, c tunnel.Config) (opened tunnel.Tunnel) {
	t.Helper()
	ns.Inside(func() (err error) { opened, err = d.Open(c, slog.New(slog.DiscardHandler), func() {}); return err })
	t.Cleanup(func() { _ = opened.Close(false) })
	return opened
}

// crosses reports whether a packet of the client is answered.
func (p *pair) crosses() bool {
	_, err := p.client.Handle.Run(context.Background(), "", "ping", "-c", "1", "-W", "0.3", "169.254.18.1")
	return err == nil
}

func (p *pair) mustCross(t *testing.T, what string) {
	t.Helper()
	wait.Until(t, what, patience, p.crosses)
}

// TestThroughNAT: the server sends to where the client's packets come from, also after that changed, and again after a
// restart of its process.
func TestThroughNAT(t *testing.T) {
	p := newPair(t)
	p.mustCross(t, "the tunnel crosses a NAT")
	if addresses := p.client.IP("-6 addr show dev lqn-tunnel"); strings.Contains(addresses, "inet6") {
		t.Errorf("the link announces IPv6: %s", addresses)
	}
	stats, err := p.serverTunnel.Stats()
	require.NoError(t, err)
	if stats.Endpoint.String() != "192.0.2.7:40000" || !stats.Session.Usable || stats.RxBytes == 0 || stats.TxBytes == 0 || stats.Changed {
		t.Errorf("state of the server's tunnel: %+v", stats)
	}
	p.server.ServeSources("169.254.18.1:7000")
	if source, err := p.client.Source(netip.MustParseAddrPort("169.254.18.1:7000")); err != nil || source == "" {
		t.Errorf("a datagram of a process: %q, %v", source, err) // its checksum is the network card's
	}
	p.masquerade(40001)
	p.router.Inside(func() error { return netlink.ConntrackTableFlush(netlink.ConntrackTable) })
	p.mustCross(t, "the tunnel follows its client")
	require.NoError(t, p.serverTunnel.Close(false))
	if !p.crosses() {
		t.Error("the kernel does not carry packets without the process")
	}
	again := open(t, p.server, p.serverDriver, p.serverConfig)
	if stats, _ := again.Stats(); stats.Endpoint.String() != "192.0.2.7:40001" {
		t.Errorf("remote end after a restart: %v", stats.Endpoint)
	}
}

// TestClosed: a closed tunnel neither sends nor accepts, and opens again.
func TestClosed(t *testing.T) {
	p := newPair(t)
	p.mustCross(t, "the tunnel carries packets")
	closed := p.serverConfig
	closed.Closed = true
	if changed, err := p.serverTunnel.Apply(closed); !changed || err != nil {
		t.Fatalf("changed %t, %v", changed, err)
	}
	if p.crosses() {
		t.Error("a closed tunnel answers")
	}
	if stats, err := p.serverTunnel.Stats(); err != nil || stats.Changed || stats.RxBytes == 0 {
		t.Errorf("state of a closed tunnel: %+v, %v", stats, err)
	}
	if changed, err := p.serverTunnel.Apply(p.serverConfig); !changed || err != nil {
		t.Fatalf("changed %t, %v", changed, err)
	}
	p.server.IP("addr add 169.254.18.1/30 dev lqn-tunnel", "neigh replace 169.254.18.2 lladdr "+clientMAC.String()+" dev lqn-tunnel")
	p.mustCross(t, "the tunnel opens again")
}

// TestRestored: Apply changes nothing without need, and restores what another program changed.
func TestRestored(t *testing.T) {
	p := newPair(t)
	p.mustCross(t, "the tunnel carries packets")
	if changed, err := p.clientTunnel.Apply(p.clientConfig); changed || err != nil {
		t.Errorf("without a difference: changed %t, %v", changed, err)
	}
	for name, spoil := range map[string]string{
		"link of another kind":   "link add lqn-tunnel type bridge",
		"no link":                "",
		"other VXLAN link":       "link add lqn-tunnel type vxlan id 7 dstport 61100",
		"link that learns":       fmt.Sprintf("link add lqn-tunnel type vxlan id %d dstport 61100 srcport 61100 61101 learning", VNI(p.clientDriver.derive)),
		"link without its ports": fmt.Sprintf("link add lqn-tunnel type vxlan id %d dstport 61100 nolearning", VNI(p.clientDriver.derive)),
	} {
		p.client.IP("link del lqn-tunnel")
		if spoil != "" {
			p.client.IP(spoil)
		}
		changed, err := p.clientTunnel.Apply(p.clientConfig)
		link := p.client.IP("-d link show lqn-tunnel")
		if !changed || err != nil || !strings.Contains(link, "nolearning") || !strings.Contains(link, "srcport 61100 61101 dstport 61100") || !strings.Contains(link, "NOARP") {
			t.Errorf("%s: changed %t, %v, %s", name, changed, err, link)
		}
	}
	p.client.IP("addr add 169.254.18.2/30 dev lqn-tunnel", "neigh replace 169.254.18.1 lladdr "+serverMAC.String()+" dev lqn-tunnel")
	p.mustCross(t, "a restored tunnel carries packets")
}

// TestRenewal: a client tries its endpoints in turn, and keeps one that works.
func TestRenewal(t *testing.T) {
	p := newPair(t)
	p.clientConfig.Endpoints = []string{"192.0.2.99:51840", "192.0.2.1:51840"}
	if changed, err := p.clientTunnel.Apply(p.clientConfig); changed || err != nil {
		t.Errorf("its endpoint is still one of them: changed %t, %v", changed, err)
	}
	require.NoError(t, p.clientTunnel.RenewAt(netip.MustParseAddrPort("192.0.2.99:51840")))
	stats, err := p.clientTunnel.Stats()
	require.NoError(t, err)
	if stats.Session.Usable || stats.Endpoint.Addr().String() != "192.0.2.99" || p.crosses() {
		t.Errorf("at an endpoint that does not answer: %+v", stats)
	}
	require.NoError(t, p.clientTunnel.Renew(t.Context(), parsed.Addresses("192.0.2.98"), nil))
	for range 2 {
		require.NoError(t, p.clientTunnel.Renew(t.Context(), parsed.Addresses("192.0.2.98"), nil))
	}
	if stats, _ := p.clientTunnel.Stats(); stats.Endpoint.String() != "192.0.2.99:51840" {
		t.Errorf("three renewals with three endpoints end at %v", stats.Endpoint)
	}
	require.NoError(t, p.clientTunnel.MoveTo(netip.MustParseAddrPort("192.0.2.1:51840")))
	p.mustCross(t, "the client moves")
}

// TestForeignNetwork: packets of another virtual network, as of somebody without the keys, are dropped.
func TestForeignNetwork(t *testing.T) {
	p := newPair(t)
	p.mustCross(t, "the tunnel carries packets")
	other := New(func(string) [32]byte { return [32]byte{9, 9, 9} }, nil)
	require.NoError(t, p.clientTunnel.Close(true))
	open(t, p.client, other, p.clientConfig)
	p.client.IP("addr add 169.254.18.2/30 dev lqn-tunnel", "neigh replace 169.254.18.1 lladdr "+serverMAC.String()+" dev lqn-tunnel")
	if p.crosses() {
		t.Error("packets with a VNI of other keys are answered")
	}
}

// TestPortInUse: a tunnel whose port another program has is not opened, leaves no link, and opens once the port is
// free.
func TestPortInUse(t *testing.T) {
	ns := netns.New(t)
	taken := ns.ListenUDP("0.0.0.0:61100")
	c := tunnel.Config{Name: "lqn-tunnel", ListenPort: clientPort, MTU: 1400, MAC: clientMAC, PeerMAC: serverMAC, Endpoints: []string{"192.0.2.1:51840"}}
	d := New(func(string) [32]byte { return [32]byte{1} }, nil)
	ns.Inside(func() error {
		if _, err := d.Open(c, slog.New(slog.DiscardHandler), func() {}); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("opened: %v", err)
		}
		return nil
	})
	if links := ns.IP("-o link show"); strings.Contains(links, "lqn-tunnel") {
		t.Errorf("a link is left: %s", links)
	}
	require.NoError(t, taken.Close())
	open(t, ns, d, c)
}

// TestOtherPort: a client that gets another port, as at each renewal, is found there, and keeps its counters.
func TestOtherPort(t *testing.T) {
	p := newPair(t)
	p.mustCross(t, "the tunnel carries packets")
	p.clientConfig.ListenPort++
	if changed, err := p.clientTunnel.Apply(p.clientConfig); !changed || err != nil {
		t.Fatalf("changed %t, %v", changed, err)
	}
	p.client.IP("addr add 169.254.18.2/30 dev lqn-tunnel", "neigh replace 169.254.18.1 lladdr "+serverMAC.String()+" dev lqn-tunnel")
	p.mustCross(t, "the server follows")
	if stats, err := p.clientTunnel.Stats(); err != nil || stats.RxBytes < 2*84 || !stats.Session.Usable || stats.Endpoint.String() != "192.0.2.1:51840" {
		t.Errorf("state of the client's tunnel: %+v, %v", stats, err)
	}
	if stats, _ := p.serverTunnel.Stats(); stats.Endpoint.String() != "192.0.2.7:61101" {
		t.Errorf("the server sends to %v", stats.Endpoint)
	}
}
