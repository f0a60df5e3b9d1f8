package wireguard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// A gateway takes packets out of the tunnel and forwards them into an overlay, as large as the kernel makes
// them: TCP in segments of up to 64 KiB; UDP must stay as it is, VXLAN would send joined packets on wrongly.
func TestForwardingIntoAnOverlay(t *testing.T) {
	const (
		nodeOverlay    = "10.99.0.2"
		gatewayOverlay = "10.99.0.1"
		overlayRange   = "10.99.0.0/24"
	)
	forEachImplementation(t, func(t *testing.T, p *pair) {
		gateway, node := p.server, newHost(t)
		connect(gateway, node, "underlay", "198.51.100.1/24", "198.51.100.2/24")
		vxlan(gateway, "underlay", "198.51.100.1", "198.51.100.2", gatewayOverlay+"/24")
		vxlan(node, "underlay", "198.51.100.2", "198.51.100.1", nodeOverlay+"/24")
		gateway.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
		client := p.clientConfig
		client.AllowedIPs = parsed.Prefixes(serverTunnel+"/32", overlayRange)
		p.client.apply(p.clientDevice, client)
		p.client.IP("route add " + overlayRange + " dev " + linkName)
		node.IP("route add 169.254.18.0/30 via " + gatewayOverlay)

		p.client.mustAsk(node.serveUDP(nodeOverlay + ":7000"))
		p.client.exchangeTCP(node.serveTCP(nodeOverlay+":7000"), 4<<20)
		node.exchangeTCP(p.client.serveTCP(clientTunnel+":7000"), 4<<20)
		burstUDP(t, p.client, node, netip.MustParseAddrPort(nodeOverlay+":7001"))
		burstUDP(t, node, p.client, netip.MustParseAddrPort(clientTunnel+":7001"))
	})
}

func vxlan(h *host, underlay, local, remote, address string) {
	h.t.Helper()
	h.IP(
		fmt.Sprintf("link add overlay mtu 1450 type vxlan id 42 dstport 6091 dev %s local %s remote %s nolearning", underlay, local, remote),
		"addr add "+address+" dev overlay",
		"link set overlay up",
	)
}

// burstUDP sends bursts of equal datagrams, each burst in one call of the kernel, and expects all of them.
func burstUDP(t *testing.T, from, to *host, target netip.AddrPort) {
	t.Helper()
	const (
		bursts = 20
		count  = 32
		size   = 1200
	)
	receiver, sender := to.ListenUDP(target.String()), from.ListenUDP("0.0.0.0:0")
	require.NoError(t, receiver.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 65536)
	for burst := range bursts {
		require.NoError(t, sendSegments(sender, target, burst*count, count, size))
		seen := make(map[uint32]bool)
		for len(seen) < count {
			n, err := receiver.Read(buf)
			if err != nil {
				t.Fatalf("burst %d to %v: %d of %d datagrams: %v", burst, target, len(seen), count, err)
			}
			number := binary.BigEndian.Uint32(buf)
			if n != size || number < uint32(burst*count) || number >= uint32((burst+1)*count) || seen[number] {
				t.Fatalf("burst %d to %v: datagram %d of %d bytes", burst, target, number, n)
			}
			seen[number] = true
		}
	}
}

// sendSegments sends numbered datagrams as one with UDP_SEGMENT, so that they travel close to each other.
func sendSegments(conn *net.UDPConn, to netip.AddrPort, first, count, size int) error {
	payload := make([]byte, count*size)
	for i := range count {
		binary.BigEndian.PutUint32(payload[i*size:], uint32(first+i))
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var send error
	control := raw.Control(func(fd uintptr) {
		if send = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size); send == nil {
			send = unix.Sendto(int(fd), payload, 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		}
	})
	return errors.Join(control, send)
}
