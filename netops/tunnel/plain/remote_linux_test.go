package plain

import (
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/tunnel"
)

func remoteOf(t *testing.T, of tunnel.Tunnel) string {
	t.Helper()
	stats, err := of.Stats()
	require.NoError(t, err)
	if !stats.Endpoint.IsValid() {
		return ""
	}
	return stats.Endpoint.String()
}

// TestPrivate: once the user no longer allows it, no packet goes to a public address: neither to a configured endpoint,
// nor to one that was learned before, also by an earlier process, nor to the source of a client.
func TestPrivate(t *testing.T) {
	const inside, outside = "10.9.9.9:51840", "8.8.8.8:51840"
	p := newPair(t)
	public, private := p.clientConfig, p.clientConfig
	public.Endpoints, private.Endpoints, private.Private = []string{inside}, []string{inside}, true
	client := p.clientTunnel
	learn := func() {
		t.Helper()
		_, err := client.Apply(public)
		require.NoError(t, err)
		require.NoError(t, client.MoveTo(netip.MustParseAddrPort(outside)))
	}
	expect := func(what string) {
		t.Helper()
		if got := remoteOf(t, client); got != inside {
			t.Errorf("%s: remote end %q", what, got)
		}
	}
	learn()
	changed, err := client.Apply(private)
	if !changed || err != nil {
		t.Errorf("changed %t, %v", changed, err)
	}
	expect("no longer allowed")
	if err := client.MoveTo(netip.MustParseAddrPort(outside)); err == nil {
		t.Error("the tunnel moves to a public address")
	}
	if err := client.RenewAt(netip.MustParseAddrPort(outside)); err == nil {
		t.Error("the tunnel begins at a public address")
	}
	expect("after a move")
	learn()
	require.NoError(t, client.Close(false))
	client = open(t, p.client, p.clientDriver, private)
	expect("of an earlier process")
	refused := private
	refused.Endpoints = []string{outside}
	for range 2 {
		if _, err := client.Apply(refused); err == nil {
			t.Error("a public endpoint is accepted")
		}
	}

	other := newPair(t) // its client comes from a public address
	other.mustCross(t, "the tunnel carries packets")
	other.serverConfig.Private = true
	_, err = other.serverTunnel.Apply(other.serverConfig)
	require.NoError(t, err)
	other.server.IP("addr add 169.254.18.1/30 dev lqn-tunnel", "neigh replace 169.254.18.2 lladdr "+clientMAC.String()+" dev lqn-tunnel", "link set lqn-tunnel up")
	for range 3 {
		if other.crosses() {
			t.Error("the server answers at a public address")
		}
	}
	if got := remoteOf(t, other.serverTunnel); got != "" {
		t.Errorf("the server's remote end is %s", got)
	}
}

// TestFailedChange: endpoints that Apply could not set are set by the next one.
func TestFailedChange(t *testing.T) {
	p := newPair(t)
	d := p.clientTunnel.(*device)
	changed := p.clientConfig
	changed.Endpoints = []string{"10.9.9.9:51840"}
	real := d.socket
	p.client.Inside(func() (err error) { d.socket, err = openSocket(); return err })
	require.NoError(t, d.socket.close())
	if _, err := d.Apply(changed); err == nil {
		t.Fatal("a closed socket changes the remote end")
	}
	d.socket = real
	_, err := d.Apply(changed)
	require.NoError(t, err)
	if got := remoteOf(t, d); got != "10.9.9.9:51840" {
		t.Errorf("remote end %s", got)
	}
}

// TestIPv6Endpoints: the link sends by IPv4, so other endpoints are left out.
func TestIPv6Endpoints(t *testing.T) {
	p := newPair(t)
	c := p.clientConfig
	c.Endpoints = []string{"[2001:db8::1]:51840", "10.9.9.9:51840", "[::ffff:10.9.9.8]:51840"}
	_, err := p.clientTunnel.Apply(c)
	require.NoError(t, err)
	for _, want := range []string{"10.9.9.9:51840", "10.9.9.8:51840", "10.9.9.9:51840"} {
		if got := remoteOf(t, p.clientTunnel); got != want {
			t.Errorf("remote end %s, want %s", got, want)
		}
		require.NoError(t, p.clientTunnel.Renew(t.Context(), nil, nil))
	}
	c.Endpoints = c.Endpoints[:1]
	if _, err := p.clientTunnel.Apply(c); err == nil {
		t.Error("no endpoint of IPv4: accepted")
	}
}

// TestSamePortAtBothEnds: a remote end at the listen port stays there when the client gets another one.
func TestSamePortAtBothEnds(t *testing.T) {
	const remote = "10.9.9.9:61100" // clientPort
	p := newPair(t)
	c := p.clientConfig
	c.Endpoints = []string{remote}
	for range 2 {
		_, err := p.clientTunnel.Apply(c)
		require.NoError(t, err)
		if got := remoteOf(t, p.clientTunnel); got != remote {
			t.Errorf("remote end %s with listen port %d", got, c.ListenPort)
		}
		c.ListenPort++
	}
}

// TestGroup: no packet arrives on a link that the packet filter does not know as a tunnel yet.
func TestGroup(t *testing.T) {
	p := newPair(t)
	c := p.clientConfig
	c.ListenPort, c.Group = c.ListenPort+1, 7
	_, err := p.clientTunnel.Apply(c)
	require.NoError(t, err)
	if link := p.client.IP("link show lqn-tunnel"); !strings.Contains(link, "group 7 ") {
		t.Errorf("a new link: %s", link)
	}
}
