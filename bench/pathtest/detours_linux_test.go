package pathtest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// recordPods adds the pods of a cluster's nodes to its API server.
func (c *testCluster) recordPods() {
	c.t.Helper()
	for i := range c.Nodes {
		address := clusters.InPods(i, clusters.PodNumber).String()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}, Spec: corev1.PodSpec{NodeName: c.NodeName(i)},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}},
		}
		c.Create(pod)
	}
}

// detour is a fault caused by ip(8) on a node of cluster a, whose peer's pods are in 10.12.0.0/16, and its reason.
func detour(name, reason string, commands ...string) pathFault {
	do := func(c *testCluster, verb string) {
		for _, command := range commands {
			if verb != "add" {
				command, _, _ = strings.Cut(command, " action ") // of IPsec
			}
			c.Nodes[1].IP(strings.Replace(command, " add ", " "+verb+" ", 1))
		}
	}
	return pathFault{
		name: name, a: health.Degraded, reason: reason,
		begin: func(a, _ *testCluster) { do(a, "add") }, recover: func(a, _ *testCluster) { do(a, "del") },
	}
}

// TestDetoursAreShown checks that foreign rules, routes and IPsec policies that divert packets of a node's pods are
// shown within five seconds, by name, even though the packets that verify the path, to nodes of the peer, cross.
func TestDetoursAreShown(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.recordPods()
	a.Connect(b.Cluster)
	b.Connect(a.Cluster)
	const to, drop = "rule add prio 50 to 10.12.0.0/16 lookup 999", "route add blackhole default table 999"
	main := "rule add prio 50 lookup main suppress_prefixlength 0"
	faults := []pathFault{
		detour("blackhole", "route 0.0.0.0/0 blackhole table 999", to, drop),
		detour("prohibit", "route 0.0.0.0/0 prohibit table 999", to, "route add prohibit default table 999"),
		detour("unreachable", "route 0.0.0.0/0 unreachable table 999", to, "route add unreachable default table 999"),
		detour("smaller prefix", "rule 50 to 10.12.7.0/24 table 999", "rule add prio 50 to 10.12.7.0/24 lookup 999", drop),
		detour("by a pod's link", "iif cni0 table 999", "rule add prio 50 iif cni0 to 10.12.0.0/16 lookup 999", drop),
		detour("by a pod's source", "rule 50 from 10.244.2.0/24 to 10.12.0.0/16 table 999", "rule add prio 50 from 10.244.2.0/24 to 10.12.0.0/16 lookup 999", drop),
		detour("type of service", "with tos 0x10 meet", "rule add prio 50 to 10.12.0.0/16 tos 0x10 blackhole"),
		detour("port", "with ipproto 6 dport 443 meet", "rule add prio 50 to 10.12.0.0/16 ipproto tcp dport 443 blackhole"),
		detour("IPsec policy", "src 0.0.0.0/0 dst 10.12.0.0/16 dir out action block", "xfrm policy add dst 10.12.0.0/16 dir out action block"),
		detour("route in main", "rule 50 table 254, route 10.12.0.0/16 table 254", main, "route add 10.12.0.0/16 via "+clusters.Outside.String()),
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { f.shows(t, a, b) })
	}
	t.Run("route in main, later than its rule", func(t *testing.T) {
		a.Nodes[1].For(t).IP(main)
		defer a.Nodes[1].For(t).IP(strings.Replace(main, " add ", " del ", 1))
		detour("", "rule 50 table 254, route 10.12.3.0/24 table 254", "route add 10.12.3.0/24 via "+clusters.Outside.String()).shows(t, a, b)
	})
}
