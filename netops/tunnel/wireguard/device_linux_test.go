package wireguard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/tunnel"
)

func TestTunnelCarriesTraffic(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
		p.server.mustAsk(p.client.serveUDP(clientTunnel + ":7000"))
		p.client.exchangeTCP(p.server.serveTCP(serverTunnel+":7000"), 1<<20)
		client, server := stats(t, p.clientDevice), stats(t, p.serverDevice)
		if client.Endpoint.String() != "192.0.2.1:51840" || server.Endpoint.Addr().String() != "192.0.2.11" {
			t.Errorf("endpoints: of the client %v, of the server %v", client.Endpoint, server.Endpoint)
		}
		for name, s := range map[string]deviceStats{"client": client, "server": server} {
			if age := time.Since(s.Session.Since); age < -time.Second || age > 2*patience {
				t.Errorf("%s: last handshake %v ago", name, age)
			}
			if s.RxBytes < 1<<20 || s.TxBytes < 1<<20 {
				t.Errorf("%s: %+v after 1 MiB both ways", name, s)
			}
		}
		if int(server.Endpoint.Port()) != client.ListenPort || server.ListenPort != 51840 {
			t.Errorf("ports: server %+v, client %+v", server, client)
		}
		if d := p.clientDevice; d.implementation != p.clientConfig.Implementation {
			t.Errorf("implementation %s, want %s", d.implementation, p.clientConfig.Implementation)
		}
	})
}

func TestApplyAgainChangesNothing(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
		before := stats(t, p.clientDevice)
		if p.client.apply(p.clientDevice, p.clientConfig) || p.server.apply(p.serverDevice, p.serverConfig) {
			t.Error("the same configuration changed something")
		}
		if after := stats(t, p.clientDevice); after.Session.Since != before.Session.Since || after.ListenPort != before.ListenPort {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

// Changes by another program that the kernel does not announce.
const (
	peerDeleted = "peer deleted"
	foreignPeer = "foreign peer"
)

func TestApplyRestoresForeignChanges(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.begin()
		c, device := p.client, p.clientDevice
		for _, foreign := range []struct {
			name string
			do   func() error
		}{
			{peerDeleted, func() error { return device.engine.configure(wgtypes.Config{ReplacePeers: true}) }},
			{foreignPeer, func() error {
				return device.engine.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: newKey(t).PublicKey()}}})
			}},
			{"link deleted", func() error { c.IP("link del " + linkName); return nil }},
		} {
			settle(t, device)
			if err := foreign.do(); err != nil {
				t.Fatalf("%s: %v", foreign.name, err)
			}
			if unannounced := foreign.name == peerDeleted || foreign.name == foreignPeer; unannounced && !stats(t, device).Changed {
				t.Errorf("%s: the statistics report no change", foreign.name)
			}
			if !c.apply(device, p.clientConfig) {
				t.Errorf("%s: nothing changed", foreign.name)
			}
			if c.apply(device, p.clientConfig) {
				t.Errorf("%s: a second time something changed", foreign.name)
			}
			if stats(t, device).Changed {
				t.Errorf("%s: the statistics still report a change", foreign.name)
			}
			c.mustAsk(target)
		}
	})
}

func TestApplyFollowsTheConfiguration(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.begin()
		server, client := p.serverConfig, p.clientConfig
		p.server.tunnel, p.client.tunnel = "169.254.18.5/30", "169.254.18.6/30"
		server.MTU, client.MTU = 1400, 1400
		server.AllowedIPs, client.AllowedIPs = parsed.Prefixes("169.254.18.6/32"), parsed.Prefixes("169.254.18.5/32", "10.9.0.0/16")
		server.PresharedKey, client.PresharedKey = Secret{}, Secret{}
		server.ListenPort, client.Endpoints = 51841, []string{"192.0.2.1:51841"}
		if !p.server.apply(p.serverDevice, server) || !p.client.apply(p.clientDevice, client) {
			t.Error("a new configuration changed nothing")
		}
		if p.server.apply(p.serverDevice, server) || p.client.apply(p.clientDevice, client) {
			t.Error("a second time something changed")
		}
		p.client.mustAsk(p.server.serveUDP("169.254.18.5:7000"))
		client.Name = "lqn-other" // cannot change while the device is open
		if _, err := p.clientDevice.Apply(client); err == nil {
			t.Error("an open device took another name")
		}
	})
}

func TestOnlyAllowedRangesPass(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.begin()
		seen := p.server.ListenUDP(serverTunnel + ":7001")
		// A source that the server's configuration does not allow, then an allowed one.
		c := p.client
		c.IP("addr add 10.9.0.1/32 dev " + linkName)
		for _, source := range []string{"10.9.0.1:0", clientTunnel + ":0"} {
			conn := c.ListenUDP(source)
			_, err := conn.WriteToUDPAddrPort([]byte("hello"), netip.MustParseAddrPort(serverTunnel+":7001"))
			require.NoError(t, err)
		}
		require.NoError(t, seen.SetReadDeadline(time.Now().Add(patience)))
		_, from, err := seen.ReadFromUDPAddrPort(make([]byte, 100))
		if err != nil || from.Addr().String() != clientTunnel {
			t.Errorf("first packet from %v, error %v", from, err)
		}
	})
}

func TestEndpointThatDoesNotResolveIsTriedAgain(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		cfg := p.clientConfig
		cfg.Endpoints = []string{"no name:51840"} // fails without a resolver
		require.NoError(t, p.clientDevice.Close(true))
		device := open(p.client, cfg) // an unresolvable name does not prevent the creation of the tunnel
		p.client.Inside(func() error {
			if _, err := device.Apply(cfg); err == nil {
				t.Error("no error although the peer has no endpoint")
			}
			return nil
		})
		if !p.client.apply(device, p.clientConfig) {
			t.Error("an endpoint changed nothing")
		}
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
	})
}

func TestCloseAndOpen(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		target := p.begin()
		before := stats(t, p.clientDevice)
		require.NoError(t, p.clientDevice.Close(false))
		kernel := p.clientConfig.Implementation == Kernel
		if p.client.hasLink(linkName) != kernel {
			t.Errorf("after Close the link is there: %v", !kernel)
		}
		device := open(p.client, p.clientConfig)
		if after := stats(t, device); kernel && after.Session.Since != before.Session.Since {
			t.Errorf("the kernel's device lost its session: before %+v, after %+v", before, after)
		}
		if kernel && p.client.apply(device, p.clientConfig) {
			t.Error("the adopted device differs")
		}
		p.client.mustAsk(target)
		settle(t, device)
		p.client.renew(device)
		p.client.mustAsk(target)
		require.NoError(t, device.Close(true))
		if p.client.hasLink(linkName) {
			t.Error("after Close(true) the link is there")
		}
	})
}

func TestAutoTakesTheKernelWhereItCan(t *testing.T) {
	p := newPair(t, Userspace)
	cfg := p.clientConfig
	p.client.tunnel = "169.254.19.1/30"
	cfg.Name, cfg.Implementation = "lqn-auto", Auto
	want := Userspace
	if slices.Contains(implementations(), Kernel) {
		want = Kernel
	}
	if got := open(p.client, cfg).implementation; got != want {
		t.Errorf("implementation %s, want %s", got, want)
	}
	cfg.Name, cfg.Implementation = "lqn-kernel", Kernel
	p.client.Inside(func() error {
		d, err := Open(cfg, testLog(t), func() {})
		if want == Kernel {
			return errors.Join(err, d.Close(true))
		}
		if !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("the kernel's WireGuard where there is none: %v", err)
		}
		return nil
	})
}

// TestOpenDeviceTakesAnotherImplementation: the implementation follows the configuration. The remote end is reached
// immediately after a change, at its last endpoint. An implementation that the kernel lacks does not block other
// changes.
func TestOpenDeviceTakesAnotherImplementation(t *testing.T) {
	inKernel := slices.Contains(implementations(), Kernel)
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.client.mustAsk(p.server.serveUDP(serverTunnel + ":7000"))
		target := p.client.serveUDP(clientTunnel + ":7000")
		d, cfg := p.serverDevice, p.serverConfig
		for i, wish := range []string{Auto, Userspace, Kernel, Auto, Userspace, Auto} {
			before, want := d.implementation, wish
			if !inKernel {
				want = Userspace
			} else if wish == Auto {
				want = Kernel
			}
			settle(t, d)
			bytes := stats(t, d).RxBytes
			cfg.Implementation = wish
			cfg.AllowedIPs = parsed.Prefixes(clientTunnel+"/32", fmt.Sprintf("10.9.%d.0/24", i))
			var changed bool
			var err error
			p.server.Inside(func() error { changed, err = d.Apply(cfg); return nil })
			if absent := wish == Kernel && !inKernel; !changed || errors.Is(err, unix.EOPNOTSUPP) != absent || !absent && err != nil {
				t.Errorf("%s after %s: changed %t, error %v", wish, before, changed, err)
			}
			p.server.setUp(cfg)
			if got := d.implementation; got != want {
				t.Errorf("%s after %s: it is %s", wish, before, got)
			}
			p.server.mustAsk(target) // the client does not start
			if after := stats(t, d); after.RxBytes <= bytes || after.Changed {
				t.Errorf("%s after %s: %+v, before %d bytes", wish, before, after, bytes)
			}
			if p.server.Inside(func() error { changed, err = d.Apply(cfg); return nil }); changed {
				t.Errorf("%s after %s: a second time something changed", wish, before)
			}
			if p.server.hasLink("lqn-probe") {
				t.Errorf("%s after %s: a link is left", wish, before)
			}
		}
	})
}

// A link with our name and another kind would block both implementations.
func TestOpenReplacesALinkOfAnotherKind(t *testing.T) {
	for _, implementation := range implementations() {
		h := newHost(t)
		h.IP("link add " + linkName + " type bridge")
		cfg := testConfig()
		cfg.Implementation = implementation
		open(h, cfg)
		if shown := h.IP("link show type bridge"); shown != "" || !h.hasLink(linkName) {
			t.Errorf("%s: the link is still a bridge, or absent: %s", implementation, shown)
		}
	}
}

func TestOpenRefusesWhatCannotBe(t *testing.T) {
	h := newHost(t)
	cfg := testConfig()
	cfg.Implementation = Userspace
	holder := h.ListenUDP("0.0.0.0:51840")
	h.Inside(func() error {
		if _, err := Open(cfg, testLog(t), func() {}); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("open on a port that is taken: %v", err)
		}
		cfg.MTU = 0
		if _, err := Open(cfg, testLog(t), func() {}); err == nil {
			t.Error("opened without an MTU")
		}
		return holder.Close()
	})
	wait.Until(t, "the link of the device that could not start is gone", patience, func() bool { return !h.hasLink(linkName) })
}

// TestNameServerThatDoesNotAnswer: neither Apply nor Stats waits for it, and a late answer is used.
func TestNameServerThatDoesNotAnswer(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		release, found := make(chan struct{}), make(chan struct{}, 1)
		p.clientDevice.endpoints.Found = func() { found <- struct{}{} }
		p.clientDevice.endpoints.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			<-release
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		cfg := p.clientConfig
		cfg.Endpoints = []string{"gw.example:51841"}
		done := make(chan error, 1)
		go func() {
			_, err := p.clientDevice.Apply(cfg)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, tunnel.ErrSearching) {
				t.Errorf("error %v", err)
			}
		case <-time.After(patience):
			close(release)
			t.Fatal("Apply waits for the name server")
		}
		select {
		case <-found:
			t.Error("a pass is called for before there is an answer")
		default:
		}
		close(release)
		select {
		case <-found:
		case <-time.After(patience):
			t.Fatal("nothing calls for a pass")
		}
		if !p.client.apply(p.clientDevice, cfg) {
			t.Error("the answer changed nothing")
		}
		if s := stats(t, p.clientDevice); s.Endpoint.String() != "192.0.2.1:51841" || s.Changed {
			t.Errorf("after the answer %+v", s)
		}
	})
}

// TestNameThatIsMissing: a missing name calls found once. A search that is restarted after each failure must not;
// otherwise passes would follow each other without a pause.
func TestNameThatIsMissing(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, p *pair) {
		asked := make(chan struct{}, 1)
		var calls atomic.Int32
		p.clientDevice.endpoints.Found = func() { calls.Add(1) }
		p.clientDevice.endpoints.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			asked <- struct{}{}
			return nil, errors.New("no such host")
		}
		cfg := p.clientConfig
		cfg.Endpoints = []string{"gw.example:51841"}
		for range 5 {
			wait.Until(t, "a search begins", patience, func() bool {
				if _, err := p.clientDevice.Apply(cfg); err == nil {
					t.Fatal("a name that is not there has an address")
				}
				return len(asked) > 0
			})
			<-asked
		}
		if n := calls.Load(); n > 1 {
			t.Errorf("%d calls for a pass", n)
		}
	})
}
