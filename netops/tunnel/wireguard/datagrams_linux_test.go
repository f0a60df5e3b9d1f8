package wireguard

import (
	"bytes"
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
