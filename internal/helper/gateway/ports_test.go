//go:build linux

package gateway

import (
	"fmt"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// TestPortsAfterRestart: a client without encryption keeps the ports that an earlier process had, so that links and NAT
// state stay.
func TestPortsAfterRestart(t *testing.T) {
	v := testView()
	v.peering.Role = records.Client
	v.peering.Settings = records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true)}
	g, _ := testEchoes(v)
	ns := netns.New(t)
	const first, second = 61100 + 63*records.MaxGateways, 61100 + 2*records.MaxGateways + 1
	for link, port := range map[string]int{"lqn-tunnel": first, "lqn-tunnel2": second, "lqn-tunnel3": 51840} {
		ns.IP(fmt.Sprintf("link add %s type vxlan id %d dstport %d", link, port, port))
	}
	ns.Inside(func() error { (&loop{echoes: g}).resumePorts(); return nil })
	v.renewed = g.renewed()
	for number, want := range []uint16{first, second, 61102} {
		if got := v.wantedOf(nil).ListenPort(number + 1); got != want {
			t.Errorf("tunnel %d: port %d, want %d", number+1, got, want)
		}
	}
}
