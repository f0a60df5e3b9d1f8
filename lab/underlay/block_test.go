package underlay

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// TestBlockUDP: between blocked clusters TCP passes and UDP does not, in either direction and to load balancers; within
// a cluster, and with a third one, UDP passes.
func TestBlockUDP(t *testing.T) {
	s := spec.Spec{Clusters: []spec.Cluster{{Name: "a", Nodes: 2}, {Name: "b", Nodes: 1}, {Name: "c", Nodes: 1}}}.Complete()
	u, members := newStyled(t, s)
	a, neighbour, b, c := members[0], members[1], members[2], members[3]
	balanced := netip.AddrPortFrom(spec.BalancerAddress(spec.BalancerPool(1), 1), 80)
	require.NoError(t, u.SetBalancers(s.Clusters[1], []Balance{
		{Address: balanced.Addr(), Protocol: "udp", Port: 80, Nodes: []netip.Addr{b.Address}, NodePort: 9},
	}))
	run := func(script string) {
		t.Helper()
		_, err := execute(u.Router, script, "nft", "-f", "-")
		require.NoError(t, err)
	}
	for _, m := range members {
		echo(t, m)
	}
	at := func(m Member) netip.AddrPort { return netip.AddrPortFrom(m.Address, 9) }
	expect := func(when string, blocked bool) {
		t.Helper()
		for name, path := range map[string]struct {
			from Member
			to   netip.AddrPort
			want bool
		}{
			"there": {a, at(b), !blocked}, "back": {b, at(a), !blocked}, "to a load balancer": {a, balanced, !blocked},
			"in the cluster": {a, at(neighbour), true}, "with another cluster": {c, at(a), true},
		} {
			if got := answered(t, path.from, path.to, path.want); got != path.want {
				t.Errorf("%s, %s: answered %v, want %v", when, name, got, path.want)
			}
		}
		address, from := listen(t, b)
		dial(t, a, netip.Addr{}, address)
		<-from
	}
	run(AllowUDP("a", "b"))
	expect("before", false)
	for range 2 {
		run(BlockUDP("b", "a"))
	}
	expect("while blocked", true)
	run(AllowUDP("a", "b"))
	expect("after", false)
}

// echo answers UDP on port 9 of a member.
func echo(t *testing.T, m Member) {
	t.Helper()
	var conn net.PacketConn
	require.NoError(t, m.Namespace.Do(func() (err error) {
		var config net.ListenConfig
		conn, err = config.ListenPacket(context.Background(), "udp4", ":9")
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 64)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buf[:n], from)
		}
	}()
}

// answered reports whether a datagram is answered: a busy machine has time, unless none is wanted.
func answered(t *testing.T, from Member, to netip.AddrPort, wanted bool) bool {
	t.Helper()
	var conn net.Conn
	require.NoError(t, from.Namespace.Do(func() (err error) {
		conn, err = net.Dial("udp4", to.String())
		return err
	}))
	defer conn.Close()
	tries := 2
	if wanted {
		tries = 600
	}
	for range tries {
		_, _ = conn.Write([]byte("hello"))
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 64)); err == nil {
			return true
		}
	}
	return false
}
