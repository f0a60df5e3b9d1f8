package pathtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// repairTime is the time within which drift must be restored, repairs the number of attempts: a busy machine does not
// mean a slow helper.
const (
	repairTime = time.Second
	repairs    = 10
)

// alteration is an external change of the kernel, as shell commands.
type alteration struct{ name, script string }

// onNodes are alterations of the objects of a node.
var onNodes = []alteration{
	{"link deleted", "ip link del lqn-gw8"},
	{"link down", "ip link set lqn-gw8 down"},
	{"link with another MTU", "ip link set lqn-gw8 mtu 1300"},
	{"link of another group", "ip link set lqn-gw8 group 0"},
	{"another's link in its group", "ip link set eth0 group 19457"},
	{"link that does not forward", "sysctl -qw net.ipv4.conf.lqn-gw8.forwarding=0"},
	{"address deleted", "ip addr flush label lo:lqn"},
	{"far end changed", "ip link set lqn-gw8 type $(ip -d -o link show lqn-gw8 | grep -oE 'vxlan|geneve' | head -1) id 8 remote 192.0.2.77"},
	{"ARP on", "ip link set lqn-gw8 arp on"},
	{"link of another network", "ip link add lqn-gw9 type vxlan id 9 remote 192.0.2.77 dstport 6191"},
	{"address added", "ip addr add 10.9.0.1/32 dev lqn-gw8"},
	{"address without its label", "a=$(ip -o addr show label lo:lqn | awk '{print $4}'); ip addr del $a dev lo; ip addr add $a dev lo"},
	{"neighbour deleted", "ip neigh del 10.80.128.8 dev lqn-gw8"},
	{"neighbour changed", "ip neigh replace 10.80.128.8 lladdr 02:00:00:00:00:01 dev lqn-gw8 nud permanent"},
	{"nexthop deleted", "ip nexthop del id 0x4c008008"},
	{"nexthop group deleted", "ip nexthop del id 0x4e008008"},
	{"nexthop group of others added", "ip nexthop add id 0x4e000009 group 0x4c008008"},
	{"route deleted", "ip route del 10.11.0.0/16 table 7600"},
	{"route changed", "ip route replace 10.11.0.0/16 dev eth0 table 7600 proto 76"},
	{"route added", "ip route add 10.99.0.0/16 dev eth0 table 7600 proto 76"},
	{"guard's route deleted", "ip route del unreachable 10.71.0.0/16 table 7600"},
	{"routing table emptied", "ip route del 10.11.0.0/16 table 7600; ip route del 10.71.0.0/16 table 7600; ip route del 10.80.128.8 table 7600;" +
		"ip route flush table 7600"},
	{"rule deleted", "ip rule del priority 104"},
	{"rule added", "ip rule add priority 103 from 10.244.1.99 lookup main proto 76"},
	{"table deleted", "nft delete table ip liqonet"},
	{"table of IPv6 deleted", "nft delete table ip6 liqonet"},
	{"chain of IPv6 flushed", "nft flush chain ip6 liqonet ipv6-outer"},
	{"table dormant", "nft add table ip liqonet '{ flags dormant; }'"},
	{"chain deleted", "nft 'flush chain ip liqonet guard; delete chain ip liqonet guard'"},
	{"chain flushed", "nft flush chain ip liqonet source"},
	{"chain's rule added", "nft insert rule ip liqonet forward drop"},
	{"set's element deleted", "nft delete element ip liqonet peers '{ 10.11.0.0/16 }'"},
	{"set's element added", "nft add element ip liqonet peers '{ 10.99.0.0/16 }'"},
	{"foreign routes, rules and nexthops removed", networkd},
}

// onGateways are alterations of the objects of a gateway.
var onGateways = []alteration{
	{"overlay deleted", "ip link del lqn-overlay"},
	{"tunnel deleted", "ip link del lqn-tunnel"},
	{"tunnel down", "ip link set lqn-tunnel down"},
	{"tunnel with another MTU", "ip link set lqn-tunnel mtu 1300"},
	{"tunnel and overlay in each other's group", "ip link set lqn-tunnel group 19457; ip link set lqn-overlay group 19458"},
	{"another's link in the tunnel's group", "ip link set eth0 group 19458"},
	{"tunnel's address deleted", "ip addr flush dev lqn-tunnel"},
	{"overlay's address deleted", "ip addr flush dev lqn-overlay"},
	{"neighbours deleted", "ip neigh flush dev lqn-overlay nud permanent"},
	{"nexthops deleted", "ip nexthop flush"},
	{"route to the peer deleted", "ip route del 10.244.0.0/16 table 7601"},
	{"routes to nodes deleted", "ip route del 10.244.1.0/24 table 7602; ip route del unreachable default table 7602"},
	{"rule deleted", "ip rule del priority 53"},
	{"rule for the local table as the kernel makes it", "ip rule add priority 0 lookup local"},
	{"table deleted", "nft delete table ip liqonet"},
	{"table of IPv6 deleted", "nft delete table ip6 liqonet"},
	{"chain deleted", "nft 'flush chain ip liqonet ingress; delete chain ip liqonet ingress'"},
	{"chain with another policy", "nft chain ip liqonet forward '{ policy accept; }'"},
	{"set's element deleted", "nft flush set ip liqonet nodes"},
	{"foreign routes, rules and nexthops removed", networkd},
}

// networkd removes foreign objects, as systemd-networkd does when it starts (ManageForeignRoutes= and its siblings in
// networkd.conf(5)).
const networkd = "ip rule flush protocol 76; ip nexthop flush protocol 76; ip route flush table all proto 76"

// TestRepair alters every kind of object of liqonet, on a node and in a gateway: the helper restores and counts it,
// packets cross, and foreign objects stay.
func TestRepair(t *testing.T) {
	t.Parallel()
	a, b, node, gateway := watchedClusters(t)
	foreign := foreigners(b.Nodes[0])
	for _, place := range []struct {
		name        string
		alterations []alteration
		helper      watched
		told        func(records.Status) int64
	}{
		{"node", onNodes, node, func(s records.Status) int64 { return s.Nodes[0].Drift.Times }},
		{"gateway", onGateways, gateway, func(s records.Status) int64 { return s.Drift.Times }},
	} {
		t.Run(place.name, func(t *testing.T) {
			times := int64(0)
			for _, a := range place.alterations {
				t.Run(a.name, func(t *testing.T) {
					repaired(t, place.helper, func() { place.helper.ns.For(t).Run("sh", "-ec", a.script) })
					times++
				})
			}
			wait.Until(t, "status that tells", patience, func() bool {
				s, err := b.status()
				return err == nil && len(s.Nodes) > 0 && place.told(s) >= times
			})
		})
	}
	if b.Kinds.WireGuard == records.Kernel { // only then can its peer be changed externally
		t.Run("gateway/peer deleted", func(t *testing.T) {
			repaired(t, gateway, func() { deletePeer(t, gateway.ns) })
		})
	}
	servePods(t, a, b)
	expectAll(a, b)
	expectAll(b, a)
	t.Run("node/connection that begins without the table", func(t *testing.T) { beginsWithoutTable(t, a, b, node) })
	if got := foreigners(b.Nodes[0]); got != foreign {
		t.Errorf("foreign objects changed from\n%s\nto\n%s", foreign, got)
	}
}

// beginsWithoutTable flushes the table of a node of b, where the network plugin has the address of the node for
// connections to the peer: one that begins meanwhile reaches a's pod with its own address after the repair.
func beginsWithoutTable(t *testing.T, a, b *testCluster, node watched) {
	plugin := fmt.Sprintf("add table ip plugin; add chain ip plugin post { type nat hook postrouting priority 81; };"+
		"add rule ip plugin post oifname \"lqn-gw*\" snat to %s", b.NodeAddress(0))
	node.ns.For(t).Run("nft", plugin)
	defer node.ns.For(t).Run("nft", "delete table ip plugin")
	type result struct {
		source string
		err    error
	}
	var results []chan result
	repaired(t, node, func() {
		node.ns.For(t).Run("nft", "flush", "table", "ip", netops.Table)
		got := make(chan result, 1)
		results = append(results, got)
		go func() {
			source, err := seenBy(b.Pods[0], a.RemappedPod(0))
			got <- result{source, err}
		}()
		wait.Until(t, "a connection that begins", patience, func() bool { return b.Pods[0].Run("ss", "-Htn", "state", "syn-sent") != "" })
	})
	for _, got := range results {
		if r := <-got; r.err != nil || r.source != b.RemappedPod(0).String() {
			t.Errorf("the peer sees %q (%v), want %s", r.source, r.err, b.RemappedPod(0))
		}
	}
}

// repaired calls a function that alters objects while the helper is stopped. It fails unless they are restored and
// counted, in time in some attempt, and with few passes in some attempt. In a guest, where every system call takes
// longer, the time is not tested.
func repaired(t *testing.T, w watched, change func()) {
	t.Helper()
	// A pass that restores, a second one if the tunnel is recreated, and one that these changes trigger; twice that if
	// notifications arrive one by one.
	const most = 6
	inTime, few := testing.Short(), false
	for range repairs {
		took, passes := repair(t, w, change)
		t.Logf("after %s; %v passes", took.Round(time.Millisecond), passes)
		inTime, few = inTime || took <= repairTime, few || passes <= most
		if inTime && few {
			return
		}
	}
	t.Errorf("repaired within %s: %t, by at most %d passes: %t", repairTime, inTime, most, few)
}

// repair does this once, and returns its duration and the number of passes.
func repair(t *testing.T, w watched, change func()) (took time.Duration, passes float64) {
	t.Helper()
	w.rest(t)
	want, drift, before := w.state(t), w.counter(t, driftMetric), w.counter(t, passesMetric)
	w.Signal(unix.SIGSTOP)
	func() {
		defer w.Signal(unix.SIGCONT) // even if the change fails
		change()
	}()
	defer func() {
		if t.Failed() {
			t.Logf("state (-want +got):\n%s", cmp.Diff(want, w.state(t)))
		}
	}()
	// Missing objects are visible in the state, changes of objects outside of the state only in the counter.
	took = wait.Until(t, "repair", patience, func() bool { return w.state(t) == want })
	took += wait.Until(t, "counted repair", patience, func() bool { return w.counter(t, driftMetric) > drift })
	w.rest(t)
	return took, w.counter(t, passesMetric) - before
}

// foreigners creates foreign objects on a node, if there are none yet, and returns them.
func foreigners(n netns.Namespace) string {
	if strings.Contains(n.IP("rule show"), "4242") {
		return n.Run("sh", "-ec", "ip rule show; ip route show table 4242; ip nexthop show id 42; ip neigh show 172.31.0.77 dev eth0;"+
			"ip -4 addr show dev foreign; nft list table ip foreign")
	}
	n.Run("sh", "-ec", "ip link add foreign type bridge; ip addr add 203.0.113.1/32 dev foreign; ip link set foreign up;"+
		"ip nexthop add id 42 dev eth0; ip route add 198.51.100.0/24 nhid 42 table 4242; ip route add blackhole 203.0.113.0/24 table 4242;"+
		"ip rule add priority 4242 lookup 4242; ip neigh add 172.31.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent;"+
		"nft 'add table ip foreign; add set ip foreign peers { type ipv4_addr; elements = { 10.0.0.1 }; }; add chain ip foreign guard;"+
		"add rule ip foreign guard ip saddr @peers counter accept'")
	return foreigners(n)
}

// deletePeer removes the tunnel's peer.
func deletePeer(t *testing.T, gateway netns.Namespace) {
	t.Helper()
	gateway.For(t).Inside(func() error {
		wg, err := wgctrl.New()
		require.NoError(t, err)
		return errors.Join(wg.ConfigureDevice(netops.Tunnel, wgtypes.Config{ReplacePeers: true}), wg.Close())
	})
}
