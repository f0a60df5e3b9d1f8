package netops

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/netnstest"
)

func TestSurroundings(t *testing.T) {
	t.Parallel()
	near, far := netnstest.New(t), netnstest.New(t)
	near.IP("link add eth0 type veth peer name eth0 netns " + far.Path())
	far.IP("addr add 10.9.0.2/24 dev eth0")
	far.IP("addr add 10.9.7.3/32 dev eth0")
	far.IP("link set eth0 up")
	for _, command := range []string{
		"addr add 10.9.0.1/24 dev eth0", "addr add 10.9.8.9/32 dev lo", "link set eth0 up", "route add default via 10.9.0.2",
		"route add 10.20.0.0/16 via 10.9.0.2", "route add 10.21.0.0/24 via 10.9.0.2 table 77", "route add blackhole 10.22.0.0/16",
		"route add unreachable 10.23.0.0/16 table 88",
		// Ours, by protocol or by link.
		fmt.Sprintf("route add 10.71.0.0/16 via 10.9.0.2 proto %d table 7600", Protocol),
		"link add " + Prefix + "x type veth peer name x", "link set " + Prefix + "x up", "link set x up",
		"addr add 10.80.0.7/16 dev " + Prefix + "x",
	} {
		near.IP(command)
	}
	// Connections are tracked for the sake of a rule, and translated by another.
	near.Feed(`table ip t {
	chain out { type nat hook output priority -100; ip daddr 10.96.0.1 dnat to 10.9.7.3; }
	chain seen { type filter hook output priority 0; ct state established counter; }
}`, "nft", "-f", "-")
	talk(t, near, far, "10.9.0.2:8080", "10.9.0.2:8080")
	talk(t, near, far, "10.9.7.3:8081", "10.96.0.1:8081")
	// Nobody answers there.
	_ = near.Do(func() error {
		if c, err := net.DialTimeout("tcp4", "10.9.0.99:80", 300*time.Millisecond); err == nil {
			_ = c.Close()
			t.Error("somebody answers")
		}
		return nil
	})

	k, err := OpenAt(near.FD())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	got, err := k.Surroundings()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.Routes, netip.Prefix.Compare)
	if want := "[10.9.0.0/24 10.20.0.0/16 10.21.0.0/24 10.22.0.0/16 10.23.0.0/16]"; fmt.Sprint(got.Routes) != want {
		t.Errorf("routes %v, want %s", got.Routes, want)
	}
	slices.SortFunc(got.Addresses, netip.Addr.Compare)
	if want := "[10.9.0.1 10.9.8.9 127.0.0.1]"; fmt.Sprint(got.Addresses) != want {
		t.Errorf("addresses %v, want %s", got.Addresses, want)
	}
	slices.SortFunc(got.Connections, netip.Addr.Compare)
	ends := slices.Compact(got.Connections)
	if want := "[10.9.0.1 10.9.0.2 10.9.7.3 10.96.0.1]"; fmt.Sprint(ends) != want {
		t.Errorf("connections with %v, want %s", ends, want)
	}
}

// talk opens a connection that stays until the test ends.
func talk(t *testing.T, from, to netnstest.Namespace, listen, dial string) {
	t.Helper()
	var listener net.Listener
	err := to.Do(func() (err error) {
		listener, err = net.Listen("tcp4", listen)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp4", dial, 10*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for _, way := range [][2]net.Conn{{c, other}, {other, c}} {
		if _, err := way[0].Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := way[1].Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}
