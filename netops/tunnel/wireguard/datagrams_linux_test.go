package wireguard

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/conn"

	"liqonet.io/liqonet/internal/testbed/require"
)

// The kernel caches a lower path MTU from an ICMP message for ten minutes.
func TestBatchesPassALowerPathMTU(t *testing.T) {
	from, to := newHost(t), newHost(t)
	connect(from, to, "wire", "192.0.2.1/24", "192.0.2.2/24")
	received := to.ListenUDP("192.0.2.2:7000")
	bind := datagrams{conn.NewStdNetBind()}
	from.Inside(func() error {
		_, _, err := bind.Open(0)
		return err
	})
	t.Cleanup(func() { _ = bind.Close() })
	target, err := bind.ParseEndpoint("192.0.2.2:7000")
	require.NoError(t, err)
	buf := make([]byte, 2048)
	send := func(first byte) {
		t.Helper()
		joined := bytes.Repeat([]byte{first}, 2*1452) // the second is copied behind the first
		packets := [][]byte{joined[:1452], bytes.Repeat([]byte{first + 1}, 1452)}
		require.NoError(t, bind.Send(packets, target))
		for _, want := range packets {
			require.NoError(t, received.SetReadDeadline(time.Now().Add(patience)))
			if n, _, err := received.ReadFromUDPAddrPort(buf); err != nil || !bytes.Equal(buf[:n], want) {
				t.Fatalf("got %d bytes, the first %d: %v", n, buf[0], err)
			}
		}
	}
	send(1)
	from.IP("route add 192.0.2.2/32 dev wire mtu 1300")
	send(3)
}

// TestMarkDecides: with a mark, its route decides also after a full batch of packets, which makes wireguard-go remember
// their link.
func TestMarkDecides(t *testing.T) {
	const mark, segments = 7, 64
	here, peer := newHost(t), newHost(t)
	connect(here, peer, "wire", "192.0.2.1/24", "192.0.2.2/24")
	here.IP("rule add fwmark 7 lookup 7 priority 7")
	here.IP("route add local default dev lo table 7 src 192.0.2.1")
	local, remote := here.ListenUDP("0.0.0.0:7000"), peer.ListenUDP("192.0.2.2:7000")
	bind := datagrams{conn.NewStdNetBind()}
	var receive conn.ReceiveFunc
	var port uint16
	here.Inside(func() error {
		functions, at, err := bind.Open(0)
		if err == nil {
			receive, port = functions[0], at
		}
		return err
	})
	t.Cleanup(func() { _ = bind.Close() })
	// Both are there before the first read.
	for i := range 2 {
		require.NoError(t, sendSegments(remote, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port), i*segments, segments, 100))
	}
	const batch = conn.IdealBatchSize
	bufs, sizes, endpoints := make([][]byte, batch), make([]int, batch), make([]conn.Endpoint, batch)
	for i := range bufs {
		bufs[i] = make([]byte, 1<<16)
	}
	n, err := receive(bufs, sizes, endpoints)
	if require.NoError(t, err); n != batch { // a smaller one has no link
		t.Fatalf("%d packets: nothing is tested", n)
	}
	require.NoError(t, bind.SetMark(mark))
	require.NoError(t, bind.Send([][]byte{{1}}, endpoints[n-1]))
	require.NoError(t, local.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 100)
	if n, from, err := local.ReadFromUDPAddrPort(buf); err != nil || n != 1 || from != netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port) {
		t.Errorf("%d bytes from %v: %v", n, from, err)
	}
}
