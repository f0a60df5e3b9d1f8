package echo

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// fakeConn is a socket that receives given packets and discards replies.
type fakeConn struct {
	packets [][]byte
	end     chan struct{}
}

// ReadFromUDPAddrPort implements packetConn.
func (p *fakeConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	if len(p.packets) == 0 {
		close(p.end)
		return 0, netip.AddrPort{}, net.ErrClosed
	}
	n := copy(b, p.packets[0])
	p.packets = p.packets[1:]
	return n, nodeAddr, nil
}

// WriteTo implements packetConn.
func (*fakeConn) WriteTo([]byte, netip.AddrPort, Route) error { return nil }

// Close implements packetConn.
func (*fakeConn) Close() error { return nil }

// FuzzReceive sends packets to a socket that is both responder and prober. Each is counted exactly once.
func FuzzReceive(f *testing.F) {
	sound, _ := fullMessage().AppendTo(nil)
	reply, _ := Message{Kind: Reply, Session: 1, Size: MinSize}.AppendTo(nil)
	f.Add(sound, reply, uint8(3))
	f.Add([]byte("LQNE"), []byte{}, uint8(255))
	f.Fuzz(func(t *testing.T, one, other []byte, times uint8) {
		conn := &fakeConn{end: make(chan struct{})}
		for range times {
			conn.packets = append(conn.packets, one, other)
		}
		sent := uint64(len(conn.packets))
		counted := uint64(0) // initially the answered ones
		s := newSocket(conn, &Responder{Rate: 1, Burst: 5, Answer: func(netip.AddrPort, Message) Content {
			counted++
			return Content{}
		}})
		_, err := s.Probe(ProbeConfig{Target: nodeAddr, Interval: time.Hour})
		require.NoError(t, err)
		<-conn.end
		require.NoError(t, s.Close())
		for _, n := range s.Ignored() {
			counted += n
		}
		if counted != sent {
			t.Errorf("%d packets came, %d are answered or ignored: %v", sent, counted, s.Ignored())
		}
	})
}
