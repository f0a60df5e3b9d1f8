package kernel

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// withKind returns the state with overlay links of another kind.
func withKind(s netops.State, kind netops.LinkKind) netops.State {
	s.Links = slices.Clone(s.Links)
	for i := range s.Links {
		if s.Links[i].Kind != netops.KindDevice {
			s.Links[i].Kind = kind
		}
	}
	return s
}

// TestMemberFails: a foreign link excludes one of three overlay links. The group has the other two until the foreign
// link is removed.
func TestMemberFails(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	c := topology.NodeOfThreeGateways()
	c.Overlay.Kind = netops.KindVXLAN
	want := netops.NodeState(c)
	ns.IP(fmt.Sprintf("link add other type vxlan id %d dstport %d remote 192.0.2.1", c.Peers[0].Gateways[2].VNI, c.Overlay.Port))
	k := ns.kernel()
	for range 2 {
		have := observe(t, k)
		if err := k.Apply(netops.Diff(have, want)); err == nil {
			t.Fatal("there is room for all links: nothing was tested")
		}
		way := ns.IP("route show table 7600 " + c.Peers[0].CIDRs[0].String())
		if !strings.Contains(way, netops.NodeLink(c.Peers[0].Gateways[0].VNI)) || !strings.Contains(way, netops.NodeLink(c.Peers[0].Gateways[1].VNI)) {
			t.Errorf("to the peer: %s", way)
		}
	}
	ns.IP("link del other")
	reach(t, k, want)
}

// eachOverlay runs a test for each kind of overlay that the kernel supports.
func eachOverlay(t *testing.T, test func(t *testing.T, kind netops.LinkKind)) {
	for _, kind := range overlays() {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		ns, k := newKernel(t)
		reach(t, k, withKind(topology.NodeLike(), kind))

		shown := ns.IP("-d link show " + netops.Overlay)
		for _, want := range []string{"external", "addrgenmode none", "mtu 1450", "02:00:0a:50:00:01", ",UP"} {
			if !strings.Contains(shown, want) {
				t.Errorf("ip link does not show %q:\n%s", want, shown)
			}
		}
		if shown := ns.Run("cat", "/proc/sys/net/ipv4/conf/"+netops.Overlay+"/forwarding"); shown != "1\n" {
			t.Errorf("forwarding is %q", shown)
		}
		shown = ns.IP(fmt.Sprintf("nexthop get id %d", netops.NexthopBase+1))
		for _, want := range []string{"encap ip id 7 ", "dst 10.244.1.5 ", "ttl 64 ", "via 10.80.128.1 ", "onlink"} {
			if !strings.Contains(shown, want) {
				t.Errorf("ip nexthop does not show %q:\n%s", want, shown)
			}
		}
		shown = ns.IP("route get 10.11.5.6")
		if !strings.Contains(shown, "via 10.80.128.1") || !strings.Contains(shown, "mtu 1370") {
			t.Errorf("route to the first peer:\n%s", shown)
		}
	})
}

// TestCreatedInGroup: a link is in its group from its creation on, because firewall rules match the group.
func TestCreatedInGroup(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		k := newNamespace(t).kernel()
		require.NoError(t, k.route.createOverlay(withKind(topology.NodeLike(), kind).Links[0]))
		have := observe(t, k)
		i := slices.IndexFunc(have.Links, func(l netops.Link) bool { return l.Name == netops.Overlay })
		if i < 0 || have.Links[i].Group != netops.GroupOverlay || !have.Links[i].Down {
			t.Errorf("links %v, want one of group %d that is not up", have.Links, netops.GroupOverlay)
		}
	})
}

func TestGatewayMoveIsOneStep(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		k := newNamespace(t).kernel()
		want := withKind(topology.NodeLike(), kind)
		reach(t, k, want)
		want.Nexthops[0] = topology.GatewayA("10.244.2.9")
		if p := reach(t, k, want); len(p.Steps) != 1 {
			t.Errorf("a gateway's move takes %d steps:\n%s", len(p.Steps), p)
		}
	})
}

// TestRemoteEndMoves changes the pod of a gateway. The firewall accepts the new address, and the link changes in place,
// without effect on the objects that depend on it.
func TestRemoteEndMoves(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		k, c := newNamespace(t).kernel(), topology.NodeOfTwoPeers()
		reach(t, k, withKind(netops.NodeState(c), kind))
		c.Peers[0].Gateways[0].Pod = netip.MustParseAddr("10.244.1.9")
		p := reach(t, k, withKind(netops.NodeState(c), kind))
		if len(p.Steps) != 2 || p.Steps[0].Kind() != "firewall" || p.Steps[1].Kind() != "link" {
			t.Errorf("want a step for the firewall and one for the link:\n%s", p)
		}
	})
}

// TestOtherMode replaces a node's link in collect-metadata mode by plain links, and back. A port supports only one of
// the modes.
func TestOtherMode(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		k := newNamespace(t).kernel()
		for range 2 {
			reach(t, k, withKind(topology.NodeLike(), kind))
			reach(t, k, withKind(netops.NodeState(topology.NodeOfTwoPeers()), kind))
		}
	})
}

// TestOverlaySockets: a node's overlay listens on IPv4 only. A gateway's listens on both, and needs a filter for IPv6.
func TestOverlaySockets(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		for want, s := range map[int]netops.State{1: netops.NodeState(topology.NodeOfTwoPeers()), 2: netops.GatewayState(topology.GatewayOfEqualClusters())} {
			ns := newNamespace(t)
			reach(t, ns.kernel(), withKind(s, kind).Reachable(netops.State{}))
			sockets := 0
			for _, table := range []string{"udp", "udp6"} {
				sockets += strings.Count(ns.Run("cat", "/proc/thread-self/net/"+table), ":17CB ") // port 6091
			}
			if sockets != want {
				t.Errorf("%d sockets, want %d", sockets, want)
			}
		}
	})
}

// TestLinkSetDown: when an administrator sets the link down, the kernel removes nexthops and routes.
func TestLinkSetDown(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		ns, k := newKernel(t)
		reach(t, k, withKind(topology.NodeLike(), kind))
		ns.IP("link set down dev " + netops.Overlay)
		if shown := ns.IP("route show table 7600"); !strings.Contains(shown, "unreachable 10.11.0.0/16") ||
			strings.Contains(shown, "nhid") {
			t.Errorf("with the link down, routes that refuse are to remain alone:\n%s", shown)
		}
		reach(t, k, withKind(topology.NodeLike(), kind))
	})
}

func TestLocalRuleMovesAndReturns(t *testing.T) {
	t.Parallel()
	ns, k := newKernel(t)
	before := ns.IP("-d rule")
	reach(t, k, netops.State{LocalRuleMoved: true, Rules: []netops.Rule{{Priority: 50, Mark: 7, Table: netops.LocalTable}}})
	if shown := ns.IP("rule"); strings.Contains(shown, "0:\tfrom all lookup local\n0") || !strings.Contains(shown, "100:\tfrom all lookup local") {
		t.Errorf("rules:\n%s", shown)
	}
	reach(t, k, netops.State{})
	if after := ns.IP("-d rule"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestForeignLocalRule: another program may have moved the rule on a node. It is not ours then.
func TestForeignLocalRule(t *testing.T) {
	t.Parallel()
	ns, k := newKernel(t)
	ns.IP("rule add from all lookup local priority 100")
	ns.IP("rule del from all lookup local priority 0")
	before := ns.IP("-d rule")
	reach(t, k, netops.State{Rules: []netops.Rule{{Priority: 104, Table: netops.RoutingTable}}})
	require.NoError(t, k.Cleanup())
	if after := ns.IP("-d rule"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// carrier matches link attributes that the kernel sets some time after the link is up.
var carrier = regexp.MustCompile(`<[^>]*>|state [A-Z]+|linkdown `)

// snapshot returns the output of ip(8) and nft(8) for a namespace, without attributes that change over time: carriers,
// and tentative IPv6 addresses.
func (ns namespace) snapshot() string {
	var all strings.Builder
	for _, args := range []string{
		"-d link", "-4 -o addr", "-4 neigh show nud all", "-4 nexthop", "-4 -d route show table all", "-4 -d rule",
	} {
		all.WriteString(carrier.ReplaceAllString(ns.IP(args), ""))
	}
	all.WriteString(ns.Run("nft", "list", "ruleset"))
	return all.String()
}

func TestForeignObjectsStay(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		ns, k := newKernel(t)
		for _, args := range []string{
			"link add eth0 type veth peer name eth1",
			"link add flannel.1 type vxlan external dstport 8472",
			"link set eth0 up",
			"link set eth1 up",
			"link set flannel.1 up",
			"addr add 192.168.7.1/24 dev eth0",
			"neigh add 192.168.7.2 lladdr 02:00:00:00:00:07 dev eth0 nud permanent",
			"nexthop add id 5 via 192.168.7.2 dev eth0",
			"route add 10.11.0.0/16 nhid 5",
			"route add 10.12.0.0/16 via 192.168.7.2 dev eth0 table 7600 metric 5",
			"rule add from 10.0.0.0/8 lookup 7600 priority 105",
		} {
			ns.IP(args)
		}
		ns.Run("nft", "table ip foreign { chain c { type filter hook forward priority 0; tcp dport 80 accept; }; }")
		before := ns.snapshot()
		reach(t, k, withKind(topology.NodeLike(), kind))
		during := "\n" + ns.snapshot()
		for line := range strings.Lines(before) {
			if !strings.Contains(during, "\n"+line) {
				t.Errorf("lost meanwhile: %s", line)
			}
		}
		require.NoError(t, k.Cleanup())
		if after := ns.snapshot(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestApplyContinues(t *testing.T) {
	t.Parallel()
	ns, k := newKernel(t)
	ns.IP("route add unreachable 10.12.0.0/16 table 7600")
	refusal := func(dst string) netops.Route {
		return netops.Route{Table: netops.RoutingTable, Dst: netip.MustParsePrefix(dst), Type: netops.Unreachable}
	}
	want := netops.State{
		Links:  []netops.Link{{Name: netops.Tunnel, Kind: netops.KindDevice, Forwarding: true}},
		Routes: []netops.Route{refusal("10.12.0.0/16"), refusal("10.13.0.0/16")},
	}
	err := k.Apply(netops.Diff(netops.State{}, want))
	for _, want := range []string{
		"replace link lqn-tunnel forwarding: link lqn-tunnel: no such device",
		"add route 10.12.0.0/16 unreachable table 7600: file exists",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	have := observe(t, k)
	if len(have.Routes) != 1 || have.Routes[0] != refusal("10.13.0.0/16") {
		t.Errorf("routes %v, want the last", have.Routes)
	}
	if err := k.Apply(netops.Diff(topology.NodeLike(), netops.State{})); err != nil {
		t.Errorf("removal of what is not there: %v", err)
	}
}

func TestManyRemoteEnds(t *testing.T) {
	t.Parallel()
	farEnds, limit := 5000, 5*time.Minute
	if testing.Short() {
		farEnds = 500
	}
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		k := newNamespace(t).kernel()
		want := withKind(topology.NodeLike(), kind)
		internal, pods := netip.MustParseAddr("10.80.1.0"), netip.MustParseAddr("10.128.0.0")
		for i := range farEnds {
			internal, pods = internal.Next(), pods.Next()
			id := netops.NexthopBase + 256 + uint32(i)
			want.Neighbours = append(want.Neighbours, netops.Neighbour{Link: netops.Overlay, IP: internal, MAC: netops.OverlayMAC(internal)})
			want.Nexthops = append(want.Nexthops, netops.Nexthop{ID: id, Link: netops.Overlay, Via: internal, VNI: 7, Dst: pods})
			want.Routes = append(want.Routes, netops.Route{
				Table: netops.RoutingTable, Dst: netip.PrefixFrom(pods, 32), Type: netops.Unicast, Nexthop: id, MTU: 1370,
			})
		}
		start := time.Now()
		reach(t, k, want)
		created := time.Now()
		require.NoError(t, k.Cleanup())
		t.Logf("%d far ends: created %v, removed %v", farEnds, created.Sub(start), time.Since(created))
		if took := time.Since(start); took > limit {
			t.Errorf("took %v, want less than %v", took, limit)
		}
	})
}
