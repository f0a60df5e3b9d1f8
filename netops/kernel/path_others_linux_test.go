package kernel

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestLossesByOthers loses packets of a node's pod by a rule for a type of service, a rule for a port, and IPsec
// policies of another program, while echoes of the node still cross. A Watch reports a change, and Detours names the
// rule or policy.
func TestLossesByOthers(t *testing.T) {
	t.Parallel()
	a, b := firstPair(t)
	n := a.nodes[1]
	const low = 0x10 // of IPTOS_LOWDELAY
	peer, pod := b.seenPods[0].String(), a.pod(1).String()
	traffic := PeerTraffic{Peer: n.config.Peers[0].CIDRs, Pods: []netip.Addr{a.pod(1)}, Links: []string{netops.NodeLink(a.gateways[0].config.VNI)}}
	arrives := func(tos int) bool {
		c, err := n.pod.Dial(t.Context(), "udp4", at(b.seenPod(1)))
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		raw, err := c.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, tos) })
		require.NoError(t, err)
		_, answered := answerOf(t, c, n.namespace)
		return answered
	}
	for name, attack := range map[string]struct {
		command string // ip(8) with add
		tos     int    // of the packets that are lost
		want    string
	}{
		"type of service": {"rule add prio 50 tos 0x10 to " + peer + " blackhole", low, "with tos 0x10 meet"},
		"port":            {"rule add prio 50 ipproto udp dport 7000 to " + peer + " blackhole", 0, "with ipproto 17 dport 7000 meet"},
		"IPsec, outbound": {"xfrm policy add src " + pod + " dst " + peer + " dir out action block", 0, "src " + pod + "/32 dst " + peer + " dir out action block"},
		"IPsec, forwarded": {"xfrm policy add src " + peer + " dst " + pod + " dir fwd tmpl proto esp mode tunnel", 0,
			"src " + peer + " dst " + pod + "/32 dir fwd"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(attack.command, "xfrm") && !hasIPsec(t, n.namespace) {
				t.Skip("this kernel has no IPsec, and no policies of it")
			}
			if !arrives(attack.tos) {
				t.Fatal("packets are lost before the attack")
			}
			changed := make(chan struct{}, 1)
			_, err := n.kernel.Watch(t.Context(), changed)
			require.NoError(t, err)
			n.For(t).IP(attack.command)
			defer n.For(t).IP(undone(attack.command))
			if arrives(attack.tos) {
				t.Error("the attack loses nothing")
			}
			n.Run("ping", "-q", "-c3", "-w20", "-i0.2", "-I", a.internal(1).String(), b.seenNode(1).String())
			select {
			case <-changed:
			case <-time.After(5 * time.Second):
				t.Error("the watch reports no change")
			}
			found, err := n.kernel.Detours([]PeerTraffic{traffic})
			if err != nil || !strings.Contains(found[0], attack.want) {
				t.Errorf("found %q (%v), want %q in it", found, err, attack.want)
			}
		})
		wait.Until(t, "packets as before", answerWait, func() bool { return arrives(attack.tos) })
	}
}

// undone returns the command that deletes the object that a command of ip(8) adds.
func undone(command string) string {
	command, _, _ = strings.Cut(strings.Replace(command, " add ", " del ", 1), " action ")
	command, _, _ = strings.Cut(command, " tmpl ")
	return command
}

// TestIPsecPolicies checks that IPsec policies that drop or encrypt packets of pods are reported, and no others.
func TestIPsecPolicies(t *testing.T) {
	t.Parallel()
	ns, k, traffic := nodeWithPods(t)
	if !hasIPsec(t, ns) {
		t.Skip("this kernel has no IPsec, and no policies of it")
	}
	const drops = "xfrm policy add src 10.244.1.0/24 dst 10.71.0.0/16 dir out priority 20 action block"
	const passes = "xfrm policy add src 0.0.0.0/0 dst 10.71.0.0/17 dir out priority 10"
	for name, c := range map[string]struct {
		commands []string
		want     string
	}{
		"block":                   {[]string{drops}, "packets from 10.244.1.7/32 to 10.71.0.0/16 meet an IPsec policy of another program: src 10.244.1.0/24 dst 10.71.0.0/16 dir out action block"},
		"a part of the range":     {[]string{"xfrm policy add dst 10.71.4.0/24 dir out tmpl proto esp mode tunnel"}, "dst 10.71.4.0/24 dir out"},
		"one pod":                 {[]string{"xfrm policy add dst 10.244.1.8 dir fwd action block"}, "packets from 10.11.0.0/16 to 10.244.1.8/32"},
		"one port":                {[]string{"xfrm policy add proto tcp dport 443 dir out action block"}, "dst 0.0.0.0/0 dir out"},
		"a part passes":           {[]string{drops, passes}, "dir out action block"},
		"all of it passes before": {[]string{drops, strings.Replace(passes, "/17", "/16", 1)}, ""},
		"all of it passes after":  {[]string{drops, strings.NewReplacer("/17", "/16", " 10", " 30").Replace(passes)}, "dir out action block"},
		"another direction":       {[]string{drops, strings.NewReplacer("/17", "/16", "dir out", "dir fwd").Replace(passes)}, "dir out action block"},
		"other ranges":            {[]string{"xfrm policy add dst 10.72.0.0/16 dir out action block", "xfrm policy add src 10.244.9.0/24 dir fwd action block"}, ""},
		"for the node":            {[]string{"xfrm policy add dst 10.244.1.7 dir in action block"}, ""},
		"marked, as Cilium's":     {[]string{"xfrm policy add dir out mark 0x3e00 mask 0xff00 tmpl proto esp mode tunnel"}, ""},
		"optional, as Cilium's":   {[]string{"xfrm policy add dir fwd tmpl proto esp mode tunnel level use"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range c.commands {
				ns.For(t).IP(command)
			}
			defer ns.For(t).IP("xfrm policy flush")
			found, err := k.Detours([]PeerTraffic{traffic})
			if err != nil || !strings.Contains(found[0], c.want) || c.want == "" && found[0] != "" {
				t.Errorf("found %q (%v), want %q", found[0], err, c.want)
			}
		})
	}
}

// hasIPsec reports whether the kernel has IPsec.
func hasIPsec(t *testing.T, ns namespace) (has bool) {
	t.Helper()
	ns.Inside(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM)
		if has = err == nil; has {
			return unix.Close(fd)
		}
		return nil
	})
	return has
}

// nodeWithPods returns the namespace of a node with three gateways and two pods, each on its own link.
func nodeWithPods(t *testing.T) (namespace, *Kernel, PeerTraffic) {
	t.Helper()
	ns := newNamespace(t)
	for _, command := range []string{
		"link add eth0 type veth peer name eth0-far", "link set eth0 up", "link set eth0-far up", "addr add 172.31.1.11/24 dev eth0",
		"route add default via 172.31.1.1",
		"link add pod1 type veth peer name pod1-far", "link set pod1 up", "link set pod1-far up", "route add 10.244.1.7 dev pod1",
		"link add pod2 type veth peer name pod2-far", "link set pod2 up", "link set pod2-far up", "route add 10.244.1.8 dev pod2",
	} {
		ns.IP(command)
	}
	ns.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=1")
	c := topology.NodeOfThreeGateways()
	c.Overlay.Kind = overlays()[0]
	k := ns.kernel()
	reach(t, k, netops.NodeState(c))
	peerTraffic := PeerTraffic{Peer: c.Peers[0].CIDRs, Pods: []netip.Addr{netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("10.244.1.8")}}
	for _, g := range c.Peers[0].Gateways {
		peerTraffic.Links = append(peerTraffic.Links, netops.NodeLink(g.VNI))
	}
	return ns, k, peerTraffic
}

// TestDetour: foreign rules and routes that divert packets of a peering are reported, for each sender and any part of a
// peer's range. Other rules and routes are ignored.
func TestDetour(t *testing.T) {
	t.Parallel()
	ns, k, peerTraffic := nodeWithPods(t)
	const peer = "10.71.0.0/16"
	for name, c := range map[string]struct {
		commands []string
		want     []string // parts of the text; none: no detour
	}{
		"nothing":     {},
		"blackhole":   {[]string{"rule add prio 50 to " + peer + " lookup 999", "route add blackhole default table 999"}, []string{"rule 50 to 10.71.0.0/16 table 999", "route 0.0.0.0/0 blackhole table 999"}},
		"prohibit":    {[]string{"rule add prio 50 to " + peer + " lookup 999", "route add prohibit default table 999"}, []string{"rule 50 to 10.71.0.0/16 table 999", "route 0.0.0.0/0 prohibit table 999"}},
		"unreachable": {[]string{"rule add prio 50 to " + peer + " lookup 999", "route add unreachable default table 999"}, []string{"rule 50 to 10.71.0.0/16 table 999", "route 0.0.0.0/0 unreachable table 999"}},
		"throw":       {commands: []string{"rule add prio 50 to " + peer + " lookup 999", "route add throw default table 999"}},

		"a rule that refuses":            {[]string{"rule add prio 50 to " + peer + " blackhole"}, []string{"rule 50 to 10.71.0.0/16 blackhole"}},
		"a rule past ours":               {[]string{"rule add prio 50 to " + peer + " goto 32766"}, []string{"rule 50 to 10.71.0.0/16 goto 32766", "dev eth0"}},
		"a rule for a part of the range": {[]string{"rule add prio 50 to 10.71.4.0/24 blackhole"}, []string{"to 10.71.4.0", "rule 50 to 10.71.4.0/24 blackhole"}},
		"a route to a part of the range": {[]string{"rule add prio 50 lookup 999", "route add blackhole 10.71.4.5 table 999"}, []string{"to 10.71.4.5", "rule 50 table 999", "route 10.71.4.5/32 blackhole table 999"}},
		"a route in our table":           {[]string{"route add blackhole 10.71.4.0/24 table 7600"}, []string{"to 10.71.4.0", "rule 104 table 7600", "route 10.71.4.0/24 blackhole table 7600"}},
		"a route in main":                {[]string{"rule add prio 50 lookup main suppress_prefixlength 0", "route add " + peer + " via 172.31.1.1"}, []string{"rule 50 table 254", "route 10.71.0.0/16 table 254 via 172.31.1.1 dev eth0"}},
		"main first, without a route":    {commands: []string{"rule add prio 50 lookup main suppress_prefixlength 0"}},
		"a VPN":                          {[]string{"rule add prio 90 lookup main suppress_prefixlength 0", "rule add prio 91 not fwmark 51820 lookup 999", "route add default dev pod2 table 999"}, []string{"rule 91 mark 0xca6c table 999", "route 0.0.0.0/0 table 999 dev pod2"}},

		"a pod's link":                 {[]string{"rule add prio 50 iif pod2 to " + peer + " lookup 999", "route add blackhole default table 999"}, []string{"from 10.244.1.8", "rule 50 to 10.71.0.0/16 iif pod2 table 999"}},
		"a pod's source":               {[]string{"rule add prio 50 from 10.244.1.8 lookup 999", "route add blackhole default table 999"}, []string{"from 10.244.1.8", "rule 50 from 10.244.1.8/32 table 999"}},
		"the source of pods":           {[]string{"rule add prio 50 from 10.244.1.0/24 to " + peer + " prohibit"}, []string{"from 10.244.1.7", "rule 50 from 10.244.1.0/24 to 10.71.0.0/16 prohibit"}},
		"the node's own":               {[]string{"rule add prio 50 iif lo to " + peer + " blackhole"}, []string{"rule 50 to 10.71.0.0/16 iif lo blackhole"}},
		"what comes from the peer":     {[]string{"rule add prio 50 from 10.71.9.0/24 lookup 999", "route add blackhole default table 999"}, []string{"from 10.71.9.0 to 10.244.1.7", "rule 50 from 10.71.9.0/24 table 999"}},
		"what comes by the overlay":    {[]string{"rule add prio 50 iif " + peerTraffic.Links[0] + " to 10.244.1.8 blackhole"}, []string{"to 10.244.1.8", "rule 50 to 10.244.1.8/32 iif " + peerTraffic.Links[0] + " blackhole"}},
		"our rule for a gateway's pod": {commands: []string{"rule add prio 103 from 10.244.1.7 to 10.71.0.1 lookup main protocol 76"}},
		"after ours":                   {commands: []string{"rule add prio 105 to " + peer + " blackhole"}},
		"a type of service":            {[]string{"rule add prio 50 tos 0x10 to " + peer + " blackhole"}, []string{"to 10.71.0.1 with tos 0x10 ", "rule 50 to 10.71.0.0/16 blackhole"}},
		"a service of a pod":           {[]string{"rule add prio 50 from 10.244.1.8 tos 0x10 lookup 999", "route add blackhole default table 999"}, []string{"from 10.244.1.8 to 10.11.0.1 with tos 0x10 ", "rule 50 from 10.244.1.8/32 table 999"}},
		"a service of the peer's":      {[]string{"rule add prio 50 from 10.71.0.0/16 tos 0x10 blackhole"}, []string{"from 10.71.0.1 to 10.244.1.7 with tos 0x10 ", "rule 50 from 10.71.0.0/16 blackhole"}},
		"a route for a service":        {[]string{"rule add prio 50 lookup 999", "route add blackhole " + peer + " tos 0x08 table 999"}, []string{"with tos 0x8 ", "rule 50 table 999, route 10.71.0.0/16 blackhole table 999"}},
		"another one for it":           {[]string{"rule add prio 50 lookup 999", "route add default dev " + peerTraffic.Links[1] + " table 999", "route add prohibit default tos 0x08 table 999"}, []string{"with tos 0x8 ", "rule 50 table 999, route 0.0.0.0/0 prohibit table 999"}},
		"a port":                       {[]string{"rule add prio 50 ipproto tcp dport 440-450 to " + peer + " blackhole"}, []string{"with ipproto 6 dport 440 ", "rule 50 to 10.71.0.0/16 blackhole"}},
		"a source port, by a pod":      {[]string{"rule add prio 50 iif pod2 ipproto udp sport 53 prohibit"}, []string{"from 10.244.1.8 to 10.11.0.1 with ipproto 17 sport 53 ", "rule 50 iif pod2 prohibit"}},
		"all but a port":               {[]string{"rule add prio 50 not ipproto tcp dport 443 to " + peer + " blackhole"}, []string{"rule 50 to 10.71.0.0/16 blackhole"}},
		"a service of others":          {commands: []string{"rule add prio 50 tos 0x10 to 10.72.0.0/16 blackhole", "rule add prio 50 iif eth0 tos 0x08 blackhole", "rule add prio 105 tos 0x04 blackhole"}},
		"a service by the overlay":     {commands: []string{"rule add prio 50 tos 0x10 to " + peer + " lookup 999", "route add default dev " + peerTraffic.Links[1] + " table 999"}},
		"marked packets of a service":  {commands: []string{"rule add prio 9 fwmark 0x200/0xf00 tos 0x10 blackhole"}},
		"marked packets":               {commands: []string{"rule add prio 9 fwmark 0x200/0xf00 lookup 2004", "route add blackhole default table 2004"}},
		"packets of others":            {commands: []string{"rule add prio 50 iif eth0 blackhole", "rule add prio 50 from 10.244.9.0/24 blackhole", "rule add prio 50 to 10.72.0.0/16 blackhole"}},
		"by the overlay all the same":  {commands: []string{"rule add prio 50 to " + peer + " lookup 999", "route add default dev " + peerTraffic.Links[1] + " table 999"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range c.commands {
				ns.For(t).IP(command)
				defer ns.For(t).IP(strings.Replace(command, " add ", " del ", 1))
			}
			found, err := k.Detours([]PeerTraffic{peerTraffic})
			require.NoError(t, err)
			for _, part := range c.want {
				if !strings.Contains(found[0], part) {
					t.Errorf("got %q, want %q in it", found[0], part)
				}
			}
			if len(c.want) == 0 && found[0] != "" {
				t.Errorf("got %q, want none", found[0])
			}
		})
	}
}

// TestDecideRefusals: for a rejected packet the decision contains the route.
func TestDecideRefusals(t *testing.T) {
	t.Parallel()
	ns, k, _ := nodeWithPods(t)
	for _, kind := range []netops.RouteType{netops.Blackhole, netops.Prohibit, netops.Unreachable} {
		ns.IP("rule add prio 50 to 10.71.0.0/16 lookup 999")
		ns.IP("route add " + string(kind) + " 10.71.0.0/17 table 999")
		for name, p := range map[string]netops.Packet{
			"of the node": {To: netip.MustParseAddr("10.71.4.5")},
			"of a pod":    {From: netip.MustParseAddr("10.244.1.7"), To: netip.MustParseAddr("10.71.4.5"), IIf: "pod1"},
		} {
			d, err := k.Decide(p, 6, 40000, 80)
			want := netops.Route{Table: 999, Dst: netip.MustParsePrefix("10.71.0.0/17"), Type: kind}
			if err != nil || d.Route != want || d.Rule.Priority != 50 || d.Link != "" {
				t.Errorf("%s %s: %+v (%v)", kind, name, d, err)
			}
		}
		ns.IP("rule del prio 50")
		ns.IP("route flush table 999")
	}
	// No route rejects a packet with an invalid source.
	if d, err := k.Decide(netops.Packet{From: netip.MustParseAddr("172.31.1.11"), To: netip.MustParseAddr("10.71.4.5"), IIf: "pod1"}, 6, 40000, 80); err == nil {
		t.Errorf("from the node's own address: %+v", d)
	}
}

// TestDetourOfDSCP checks that rules that select by the six bits of DSCP (Linux 6.13) are evaluated as rules for a type
// of service.
func TestDetourOfDSCP(t *testing.T) {
	t.Parallel()
	_, k, traffic := nodeWithPods(t)
	const expedited, fraDSCP = 46, 25
	dscp, priority, to := uint8(expedited), 50, netip.MustParseAddr("10.71.0.0")
	header := unix.RtMsg{Family: unix.AF_INET, Type: nl.FR_ACT_BLACKHOLE, Dst_len: 16}
	err := k.route.execute(changing(netops.Add, unix.RTM_NEWRULE, 0, header,
		required(nl.FRA_PRIORITY, &priority), required(nl.FRA_DST, &to), required(fraDSCP, &dscp)))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel has no such rules")
	}
	require.NoError(t, err)
	found, err := k.Detours([]PeerTraffic{traffic})
	if want := "packets to 10.71.0.1 with tos 0xb8 meet"; err != nil || !strings.Contains(found[0], want) {
		t.Errorf("found %q (%v), want %q", found[0], err, want)
	}
}
