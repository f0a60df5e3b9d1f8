package kernel

import (
	"context"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

const watchTimeout = 2 * time.Minute

// TestWatch changes an object of every kind and expects a notification.
func TestWatch(t *testing.T) {
	t.Parallel()
	ns, k := newKernel(t)
	state := topology.NodeLike()
	reach(t, k, state)
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 1)
	watch, err := k.Watch(ctx, changed)
	require.NoError(t, err)
	for _, command := range []string{
		"ip link set down dev lqn-overlay",
		"ip link set dev lqn-overlay group 0",
		"ip link set dev lo group 19457",
		"sysctl -qw net.ipv4.conf.lqn-overlay.forwarding=0",
		"ip rule del priority 104",
		"nft delete table ip liqonet",
	} {
		ns.Run("sh", "-c", command)
		select {
		case <-changed:
		case <-time.After(watchTimeout):
			t.Fatalf("%s: not reported", command)
		}
		reach(t, k, state)
	}
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- watch.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the watch ended with: %v", err)
		}
	case <-time.After(watchTimeout):
		t.Error("the watch goes on after the context's end")
	}
}

// TestWatchIgnoresCollectedNeighbours: the kernel creates neighbours of a tunnel when packets are sent, and deletes
// them a minute later (neigh_periodic_work of net/core/neighbour.c).
func TestWatchIgnoresCollectedNeighbours(t *testing.T) {
	const link = 7
	w := Watch{kernel: &Kernel{}, ours: map[int32]bool{link: true}}
	for _, test := range []struct {
		kind  raw.HeaderType
		state uint16
		want  bool
	}{
		{unix.RTM_DELNEIGH, unix.NUD_NOARP, false},
		{unix.RTM_DELNEIGH, unix.NUD_FAILED, true}, // deleted by a program
		{unix.RTM_NEWNEIGH, unix.NUD_NOARP, true},  // a program has replaced ours
		{unix.RTM_NEWNEIGH, unix.NUD_PERMANENT, true},
	} {
		data, err := binary.Append(nil, binary.NativeEndian, unix.NdMsg{Family: unix.AF_INET, Ifindex: link, State: test.state})
		require.NoError(t, err)
		if got := w.isOurRoute(raw.Message{Header: raw.Header{Type: test.kind}, Data: data}); got != test.want {
			t.Errorf("message %d of a neighbour in state %#x: reported %t, want %t", test.kind, test.state, got, test.want)
		}
	}
}

// TestWatchForgetsLinks: a node creates a link for each of its pods. The watch does not keep them.
func TestWatchForgetsLinks(t *testing.T) {
	ns, k := newKernel(t)
	w := Watch{kernel: &Kernel{}, ours: map[int32]bool{}}
	ns.IP("link add lqn-overlay type veth peer name remote")
	for _, step := range []struct {
		kind raw.HeaderType
		want int
	}{{unix.RTM_NEWLINK, 1}, {unix.RTM_DELLINK, 0}} {
		replies, err := k.route.roundTrip(message{kind: unix.RTM_GETLINK, flags: raw.Dump, header: unix.IfInfomsg{}})
		require.NoError(t, err)
		for _, r := range replies { // of lo, lqn-overlay and remote
			r.Header.Type = step.kind
			w.isOurRoute(r)
		}
		if len(w.ours) != step.want {
			t.Errorf("after messages %d of %d links: keeps %v, want %d", step.kind, len(replies), w.ours, step.want)
		}
	}
}

// listener receives the notifications of a Watch.
type listener struct {
	t        *testing.T
	ns       namespace
	conn     *raw.Conn
	ours     func(raw.Message) bool
	sentinel func() // causes a last notification
	isLast   func(raw.Message) bool
}

// wakes runs a command in the namespace and reports whether one of its notifications is about our objects.
func (l listener) wakes(command string) bool {
	l.t.Helper()
	l.ns.Run("sh", "-c", command)
	l.sentinel()
	require.NoError(l.t, l.conn.SetReadDeadline(time.Now().Add(watchTimeout)))
	woken := false
	for {
		messages, err := l.conn.Receive()
		require.NoError(l.t, err)
		for _, m := range messages {
			if l.isLast(m) {
				return woken
			}
			woken = l.ours(m) || woken
		}
	}
}

// check runs commands, each of which must, or must not, cause a notification about our objects.
func (l listener) check(want bool, commands ...string) {
	l.t.Helper()
	for _, command := range commands {
		if got := l.wakes(command); got != want {
			l.t.Errorf("%s: reported %v, want %v", command, got, want)
		}
	}
}

// listen subscribes as Watch does and returns the two listeners.
func listen(t *testing.T, ns namespace) (links, firewall listener) {
	t.Helper()
	w := Watch{ours: make(map[int32]bool), kernel: &Kernel{}}
	subscribed := func(family int, groups ...uint32) *raw.Conn {
		conn, err := (&Kernel{netns: ns.FD()}).subscribe(family, groups...)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	links = listener{t: t, ns: ns, conn: subscribed(unix.NETLINK_ROUTE, routeGroups...), ours: w.isOurRoute}
	links.sentinel = func() { ns.IP("rule add priority 9999 table 9999"); ns.IP("rule del priority 9999 table 9999") }
	links.isLast = func(m raw.Message) bool {
		r, err := decodeRule(m.Data)
		return m.Header.Type == unix.RTM_DELRULE && err == nil && r.Priority == 9999
	}
	firewall = listener{t: t, ns: ns, conn: subscribed(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES), ours: isOurFirewall}
	firewall.sentinel = func() { ns.Run("nft", "add table ip last; delete table ip last") }
	firewall.isLast = func(m raw.Message) bool {
		return m.Header.Type&0xff == unix.NFT_MSG_DELTABLE && strings.Contains(string(m.Data), "last\x00")
	}
	return links, firewall
}

func TestWatchReportsOursOnly(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	links, firewall := listen(t, ns)
	// Before a link of ours exists: the kernel reports its state up to a second later (net/core/link_watch.c).
	links.check(false,
		"ip link add foreign type veth peer name remote && ip link set foreign up && ip link set remote up",
		"ip addr add 192.168.7.1/24 dev foreign",
		"ip addr add 192.168.8.1/32 dev lo",
		"ip neigh add 192.168.7.2 lladdr 02:00:00:00:00:02 dev foreign nud permanent",
		"ip route add 10.11.0.0/16 via 192.168.7.2",
		"ip rule add priority 105 table 7600",
		"ip nexthop add id 5 via 192.168.7.2 dev foreign",
		"ip link set dev foreign group 7",
	)
	links.check(true,
		"ip link add lqn-overlay type veth peer name far",
		"ip link set lqn-overlay up",
		"ip link set dev lqn-overlay group 19457",
		"ip link set dev lqn-overlay group 0",
		"ip link set dev foreign group 19458",
		"ip addr add 10.80.0.1/32 dev lqn-overlay",
		"ip neigh add 10.80.0.2 lladdr 02:00:00:00:00:02 dev lqn-overlay nud permanent",
		"ip addr add 10.80.0.7/32 dev lo label lo:lqn",
		"ip addr del 10.80.0.7/32 dev lo",
		"ip rule add priority 104 table 7600 protocol 76",
		"ip rule del priority 0 table local",
		"ip rule add priority 0 table local",
		"ip route add unreachable 10.11.0.0/16 table 7600 protocol 76",
		"ip route del unreachable 10.11.0.0/16 table 7600",
	)
	links.check(true,
		"ip nexthop add id 0x4c000005 via 192.168.7.2 dev foreign",
		"ip nexthop del id 0x4c000005",
		"ip link del lqn-overlay",
	)
	firewall.check(true,
		"nft add table ip6 liqonet",
		"nft add chain ip6 liqonet c",
		"nft delete table ip6 liqonet",
		"nft add table ip liqonet",
		"nft add chain ip liqonet c",
		"nft add rule ip liqonet c accept",
		"nft 'add set ip liqonet s { type ipv4_addr; }'",
		"nft 'add element ip liqonet s { 10.0.0.1 }'",
		"nft delete table ip liqonet",
	)
	firewall.check(false,
		"nft add table ip other",
		"nft add chain ip other c",
		"nft add rule ip other c accept",
	)
}

// TestWatchIgnoresOwnRoutes: routes that Apply changes are not reported, foreign changes are.
func TestWatchIgnoresOwnRoutes(t *testing.T) {
	t.Parallel()
	ns, k := newKernel(t)
	state := topology.NodeLike()
	reach(t, k, state)
	changed := make(chan struct{}, 1)
	_, err := k.Watch(t.Context(), changed)
	require.NoError(t, err)
	own := netops.Plan{Steps: []netops.Step{{Op: netops.Add, Object: netops.Route{Table: netops.RoutingTable, Dst: netip.MustParsePrefix("10.99.0.0/16"), Type: netops.Unreachable}}}}
	require.NoError(t, k.Apply(own))
	ns.Run("ip", "route", "del", "unreachable", "10.99.0.0/16", "table", strconv.Itoa(netops.RoutingTable))
	select {
	case <-changed:
	case <-time.After(watchTimeout):
		t.Fatal("not reported of a route that another program deleted")
	}
	if n, watched := k.Changes(); n != 1 || !watched {
		t.Errorf("%d changes, watched: %t, want the one of the other program", n, watched)
	}
}
