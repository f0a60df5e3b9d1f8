package kernel

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
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
			watch, err := n.kernel.Watch(t.Context())
			require.NoError(t, err)
			n.For(t).IP(attack.command)
			defer n.For(t).IP(undone(attack.command))
			if arrives(attack.tos) {
				t.Error("the attack loses nothing")
			}
			n.Run("ping", "-q", "-c3", "-w20", "-i0.2", "-I", a.internal(1).String(), b.seenNode(1).String())
			select {
			case <-watch.Changed():
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
