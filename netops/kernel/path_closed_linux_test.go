package kernel

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailsClosed removes the objects on the path to the peer one by one: packets are dropped, and do not leave
// elsewhere. Afterwards the object is restored.
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	onNode := map[string]string{
		"link down":    "ip link set lqn-gw7 down",
		"link gone":    "ip link del lqn-gw7",
		"no group":     "ip link set dev lqn-gw7 group 0",
		"no far end":   "ip link set lqn-gw7 type KIND id 7 remote 192.0.2.77",
		"no rule":      "ip rule del priority 104",
		"no nexthop":   "ip nexthop flush protocol 76",
		"no route":     "ip route del 10.12.0.0/16 table 7600",
		"no neighbour": "ip neighbour flush dev lqn-gw7 nud permanent",
	}
	inGateway := map[string]string{
		"overlay down":      "ip link set lqn-overlay down",
		"overlay, no group": "ip link set dev lqn-overlay group 0",
		"tunnel down":       "ip link set lqn-tunnel down",
		"tunnel, no group":  "ip link set dev lqn-tunnel group 0",
		"no rule":           "ip rule del priority 53",
		"no route to peer":  "ip route del 10.244.0.0/16 table 7601",
	}
	eachPair(t, func(t *testing.T, a, b side) {
		serveElsewhere(a, b, "elsewhere")
		watched := []namespace{a.nodes[0].namespace, a.nodes[1].namespace, a.gateways[0].namespace}
		for _, ns := range watched {
			ns.Chain("clear", "out", "filter hook postrouting priority 500",
				fmt.Sprintf("oifname eth0 udp dport %d counter", servicePort))
		}
		check := func(name, command string, in namespace, follow func()) {
			t.Run(name, func(t *testing.T) {
				words := strings.Fields(strings.ReplaceAll(command, "KIND", string(a.nodes[0].config.Overlay.Kind)))
				in.Run(words[0], words[1:]...)
				n := a.nodes[0]
				silent(t, n.pod, at(b.seenPod(1)))
				silent(t, n.namespace, at(b.seenPod(1)))
				if in == a.gateways[0].namespace {
					silent(t, b.nodes[0].pod, at(a.seenPod(1)))
				}
				for _, ns := range watched {
					if packets := ns.counted("clear", "out"); packets > 0 {
						t.Errorf("%d packets left in the clear", packets)
					}
				}
				follow()
				expectAll(t, a, b)
			})
		}
		for name, command := range onNode {
			n := a.nodes[0]
			check("node/"+name, command, n.namespace, n.follow)
		}
		for name, command := range inGateway {
			g := a.gateways[0]
			check("gateway/"+name, command, g.namespace, g.follow)
		}
	})
}
